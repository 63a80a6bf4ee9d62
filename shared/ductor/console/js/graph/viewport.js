/** Pan and zoom of a drawing: pointer, wheel, two fingers, and by call. Knows nothing of what is drawn. */

const MIN_SCALE = 0.005;
const MAX_SCALE = 2.5;
const EASY_TO_READ = 0.55;
const MARGIN = 28;
/** What is fitted ends above the tools in the corner. */
const BELOW = 56;

/**
 * @param {HTMLElement} frame what is looked through
 * @param {(transform: {x: number, y: number, scale: number}) => void} onChange
 */
export function viewport(frame, onChange) {
  let view = { x: 0, y: 0, scale: 1 };
  let size = { width: 1, height: 1 };
  const pointers = new Map();
  let moved = false;
  let fitted = false;

  const clamp = (scale) => Math.min(MAX_SCALE, Math.max(MIN_SCALE, scale));
  const set = (next, whole = false) => {
    view = next;
    fitted = whole;
    onChange(view);
  };

  /** Zoom so that the point at (x, y) of the frame stays where it is. */
  function zoomAt(factor, x, y) {
    const scale = clamp(view.scale * factor);
    const ratio = scale / view.scale;
    set({ scale, x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio });
  }

  function zoom(factor) {
    zoomAt(factor, frame.clientWidth / 2, frame.clientHeight / 2);
  }

  /** The whole drawing; where that would be too small to read and there is a box to `begin` with, the part around it. */
  function fit(begin = null) {
    const [width, height] = [frame.clientWidth, frame.clientHeight];
    if (!width || !height) return;
    const across = (width - 2 * MARGIN) / size.width;
    const down = (height - MARGIN - BELOW) / size.height;
    let scale = Math.min(1, across, down);
    const part = begin && scale < EASY_TO_READ;
    if (part) scale = Math.min(0.9, Math.max(across, EASY_TO_READ));
    scale = clamp(scale);
    const high = size.height * scale;
    set({
      scale,
      x: part && across < scale ? width / 2 - (begin.x + begin.width / 2) * scale : (width - size.width * scale) / 2,
      y: high <= height - MARGIN - BELOW ? Math.max(MARGIN, (height - high) / 3) : MARGIN,
    }, true);
  }

  /** Put a point of the drawing into the middle. */
  function centre(x, y) {
    set({ ...view, x: frame.clientWidth / 2 - x * view.scale, y: frame.clientHeight / 2 - y * view.scale });
  }

  /** Move just so far that a box of the drawing is seen. */
  function reveal(box) {
    const left = box.x * view.scale + view.x;
    const top = box.y * view.scale + view.y;
    const right = left + box.width * view.scale;
    const bottom = top + box.height * view.scale;
    let [dx, dy] = [0, 0];
    if (right > frame.clientWidth - MARGIN) dx = frame.clientWidth - MARGIN - right;
    if (left + dx < MARGIN) dx = MARGIN - left;
    if (bottom > frame.clientHeight - MARGIN) dy = frame.clientHeight - MARGIN - bottom;
    if (top + dy < MARGIN) dy = MARGIN - top;
    if (dx || dy) set({ ...view, x: view.x + dx, y: view.y + dy }, fitted);
  }

  function onWheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const box = frame.getBoundingClientRect();
      zoomAt(Math.exp(-event.deltaY * 0.01), event.clientX - box.left, event.clientY - box.top);
      return;
    }
    const next = { ...view, x: view.x - event.deltaX, y: view.y - event.deltaY };
    next.x = held(next.x, view.x, frame.clientWidth, size.width * view.scale);
    next.y = held(next.y, view.y, frame.clientHeight, size.height * view.scale);
    if (next.x === view.x && next.y === view.y) return;
    event.preventDefault();
    set(next);
  }

  /** The wheel never moves the drawing out of sight; at its end the page scrolls on. */
  function held(next, now, seen, all) {
    const [low, high] = [Math.min(MARGIN, seen - all - MARGIN), Math.max(MARGIN, seen - all - MARGIN)];
    if (next < now) return Math.min(now, Math.max(next, low));
    return Math.max(now, Math.min(next, high));
  }

  function onDown(event) {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    moved = false;
  }

  function onMove(event) {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = [event.clientX, event.clientY];
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const box = frame.getBoundingClientRect();
      const apart = ([x, y]) => Math.max(1, Math.hypot(x - other[0], y - other[1]));
      zoomAt(apart(now) / apart(before), (now[0] + other[0]) / 2 - box.left, (now[1] + other[1]) / 2 - box.top);
    } else if (!moved && Math.hypot(now[0] - before[0], now[1] - before[1]) < 4) {
      return;
    } else {
      set({ ...view, x: view.x + now[0] - before[0], y: view.y + now[1] - before[1] });
    }
    if (!moved) frame.setPointerCapture(event.pointerId);
    moved = true;
    pointers.set(event.pointerId, now);
  }

  const onUp = (event) => pointers.delete(event.pointerId);

  frame.addEventListener("wheel", onWheel, { passive: false });
  frame.addEventListener("pointerdown", onDown);
  frame.addEventListener("pointermove", onMove);
  for (const end of ["pointerup", "pointercancel"]) frame.addEventListener(end, onUp);

  return {
    fit,
    zoom,
    reveal,
    centre,
    /** Whether nobody has moved the drawing since it was fitted. */
    fitted: () => fitted,
    setSize: (next) => (size = { width: Math.max(1, next.width), height: Math.max(1, next.height) }),
    /** Whether the pointer that was just released had dragged the drawing: then it was no click. */
    dragged: () => moved,
    get: () => view,
  };
}
