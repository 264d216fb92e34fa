"use strict";
// The page works without this script; with it, facts are refreshed after each batch, and answers are shown in the page.

const every = Number(document.body.dataset.every) * 1000;
const gone = document.getElementById("gone");

async function fetched(url) {
  const answer = await fetch(url, { headers: { "X-Beamish-Part": "1" }, cache: "no-store" });
  gone.hidden = true;
  return answer;
}

// Put an answer into an element. What is open and has the focus stays so.
async function fill(into, url, { focus = false } = {}) {
  into.setAttribute("aria-busy", "true");
  try {
    const answer = await fetched(url);
    if (answer.status === 204) return null;
    const open = [...into.querySelectorAll("details[open]")].map((one) => one.id);
    const active = into.contains(document.activeElement) ? document.activeElement.id : "";
    into.innerHTML = await answer.text();
    into.dataset.source = url;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (active) document.getElementById(active)?.focus({ preventScroll: true });
    if (focus) {
      (into.querySelector("h2") ?? into).focus({ preventScroll: true });
      into.scrollIntoView({ block: "nearest" });
    }
    since();
    return answer;
  } catch {
    gone.hidden = false;
    return null;
  } finally {
    into.removeAttribute("aria-busy");
  }
}

async function refresh() {
  const facts = document.getElementById("facts");
  if (!facts || document.hidden) return;
  const source = facts.dataset.source;
  const answer = await fill(facts, `${source}?version=${facts.dataset.version}`);
  facts.dataset.source = source;
  if (!answer) return;
  facts.dataset.version = answer.headers.get("X-Beamish-Version");
  const title = answer.headers.get("X-Beamish-Title");
  if (title) document.title = decodeURIComponent(title);
  const structure = decodeURIComponent(answer.headers.get("X-Beamish-Structure") ?? "");
  if (structure !== facts.dataset.structure) return location.reload(); // another pipeline: its forms differ
  await lists();
}

async function lists() {
  for (const one of document.querySelectorAll("#explore [data-source], #dropped[data-source]")) await fill(one, one.dataset.source);
}

// Times such as "12 s ago".
function since() {
  for (const one of document.querySelectorAll("[data-since]")) {
    const seconds = Math.max(Math.round(Date.now() / 1000 - Number(one.dataset.since)), 0);
    const [size, unit] = [[86400, "days"], [3600, "hours"], [60, "minutes"]].find(([size]) => seconds >= 2 * size) ?? [1, "s"];
    one.textContent = `${Math.floor(seconds / size)} ${unit} ago`;
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-into]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const into = document.getElementById(link.dataset.into);
  if (!into) return;
  event.preventDefault();
  fill(into, link.href, { focus: true });
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-into]");
  const into = form && document.getElementById(event.submitter?.dataset.into ?? form.dataset.into);
  if (!into) return;
  event.preventDefault();
  const asked = new URLSearchParams(new FormData(form));
  const action = event.submitter?.getAttribute("formaction") ?? form.getAttribute("action");
  fill(into, `${action}?${asked}`, { focus: into.id === "why" });
});

since();
setInterval(since, 1000);
if (document.getElementById("facts")) {
  setInterval(refresh, every);
  document.addEventListener("visibilitychange", refresh);
  lists();
}
