// A new workflow, from a template. Makes a draft; nothing runs before it is published.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { navigate } from "../router.js";
import { button } from "../ui/buttons.js";
import { field } from "../ui/dialog.js";
import { errorNotice } from "../ui/notice.js";
import { graphOf } from "../graph/scopes.js";
import { graphView } from "../graph/view.js";
import { TEMPLATES } from "../definitions/templates.js";

export function render(ctx) {
  ctx.title("New definition");
  let template = TEMPLATES.find((one) => one.id === ctx.query.template) ?? TEMPLATES[0];
  let named = false;
  const trouble = h("div", { "aria-live": "assertive" });
  const slug = field({
    name: "family_slug",
    label: "Name",
    value: template.slug,
    required: true,
    maxlength: 63,
    hint: "The family's slug: starts with a lower-case letter; letters, digits, _ and -. It stays.",
  });
  slug.control.addEventListener("input", () => (named = true));
  const graph = graphView({ ...graphOf(template.document), label: "Preview" });
  const create = button("Create the draft", { type: "submit", kind: "primary" });
  const cards = TEMPLATES.map((one) => h("label", { class: "choice" },
    h("input", { type: "radio", name: "template", value: one.id, checked: one === template, onchange: () => choose(one) }),
    h("span", null, h("strong", null, one.name), h("span", { class: "muted small" }, one.words))));

  function choose(one) {
    template = one;
    if (!named) slug.control.value = one.slug;
    graph.update(graphOf(one.document));
    graph.fit();
  }
  async function submit(event) {
    event.preventDefault();
    put(trouble);
    slug.fail("");
    create.disabled = true;
    try {
      const { data } = await api.post("/api/workflow-definitions", { family_slug: slug.value(), ...template.document });
      navigate(`/definitions/${data.id}/edit`);
    } catch (error) {
      const own = error.errors?.find((item) => item.field === "family_slug");
      if (own) slug.fail(own.message);
      else put(trouble, errorNotice(error));
    } finally {
      create.disabled = false;
    }
  }
  return {
    element: h("div", { class: "page" },
      h("div", { class: "title-block" },
        h("nav", { class: "crumbs", "aria-label": "Where" }, h("a", { href: "#/definitions" }, "Definitions"), " / New"),
        h("h1", null, "New definition"),
      ),
      h("div", { class: "new-split" },
        h("form", { class: "stack", onsubmit: submit, novalidate: true },
          h("fieldset", { class: "choices" }, h("legend", null, "Begin with"), cards), slug, trouble, h("div", { class: "row" }, create)),
        h("div", { class: "card graph-card-box" }, graph))),
  };
}
