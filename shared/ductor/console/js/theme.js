// Sets the colour scheme before the first paint. A plain script on purpose: modules run too late for that.
(() => {
  try {
    const theme = localStorage.getItem("ductor.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch { /* storage may be refused; the system's scheme holds then */ }
})();
