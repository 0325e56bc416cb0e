// Brings the overview up to date while it is visible.
const main = document.querySelector("main[data-source]");
const notice = document.querySelector(".notice[role=status]");

async function update() {
  if (document.visibilityState === "visible") {
    try {
      const response = await fetch(main.dataset.source, { cache: "no-store" });
      if (!response.ok) throw new Error(response.statusText);
      main.innerHTML = await response.text(); // made by a template of the manager, which escapes every name
      notice.hidden = true;
    } catch {
      notice.hidden = false;
    }
  }
  setTimeout(update, Number(main.dataset.intervalMs));
}

setTimeout(update, Number(main.dataset.intervalMs));
