"use strict";

const run = JSON.parse(document.getElementById("run-data").textContent);
const byId = (id) => document.getElementById(id);

function startTheme(redraw) {
  const button = byId("theme"), root = document.documentElement;
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const show = () => {
    button.textContent = isDark() ? "light" : "dark";
    button.setAttribute("aria-pressed", String(isDark()));
    redraw();
  };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; show(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}

function startSeries() {
  const choice = byId("series-choice"), chart = byId("series-chart");
  if (!choice) return;
  const all = [];
  for (const [group, series] of Object.entries(run.series)) {
    const parent = document.createElement("optgroup");
    parent.label = group;
    for (const [name, values] of Object.entries(series)) {
      parent.append(new Option(name, String(all.length)));
      all.push(values);
    }
    if (parent.children.length) choice.append(parent);
  }
  const draw = () => { if (all.length) drawSeries(chart, all[Number(choice.value)]); };
  choice.addEventListener("change", draw);
  draw();
}

function startSwimlane() {
  const canvas = byId("lane-canvas");
  if (!canvas) return null;
  const page = {
    canvas, status: byId("lane-status"), detail: byId("lane-detail"),
    allArrows: byId("lane-arrows"), criticalOnly: byId("lane-critical"),
  };
  const lanes = new Swimlane(run.timelines, page);
  const search = byId("lane-search"), choice = byId("lane-choice");
  choice.addEventListener("change", () => { lanes.use(Number(choice.value)); lanes.find(search.value); });
  search.addEventListener("input", () => { lanes.find(search.value); lanes.draw(); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); lanes.step(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { search.value = ""; lanes.find(""); lanes.draw(); canvas.focus(); }
  });
  byId("lane-next").addEventListener("click", () => lanes.step(1));
  byId("lane-prev").addEventListener("click", () => lanes.step(-1));
  byId("lane-fit").addEventListener("click", () => lanes.fit());
  for (const box of [page.allArrows, page.criticalOnly]) box.addEventListener("change", () => lanes.draw());
  startKeys(lanes, canvas, search);
  startMouse(lanes, canvas);
  addEventListener("resize", () => lanes.draw());
  return lanes;
}

function startKeys(lanes, canvas, search) {
  const actions = {
    ArrowLeft: () => lanes.move(-0.2), ArrowRight: () => lanes.move(0.2),
    ArrowUp: () => lanes.show(lanes.neighbour(0, -1)), ArrowDown: () => lanes.show(lanes.neighbour(0, 1)),
    "+": () => lanes.zoom(0.5), "=": () => lanes.zoom(0.5), "-": () => lanes.zoom(2), "0": () => lanes.fit(),
    "]": () => lanes.show(lanes.neighbour(1, 0)), "[": () => lanes.show(lanes.neighbour(-1, 0)),
    n: () => lanes.step(1), N: () => lanes.step(-1), Escape: () => lanes.select(-1),
  };
  canvas.addEventListener("keydown", (event) => {
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      search.focus();
    }
  });
}

function startMouse(lanes, canvas) {
  let drag = null;
  canvas.addEventListener("wheel", (event) => {
    if (event.shiftKey) return;
    event.preventDefault();
    lanes.zoom(event.deltaY > 0 ? 1.25 : 0.8, lanes.time(event.offsetX));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.offsetX, moved: false }; });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag || !event.buttons) return;
    const step = (drag.x - event.offsetX) / (lanes.width - LABELS);
    if (Math.abs(drag.x - event.offsetX) < 3 && !drag.moved) return;
    drag = { x: event.offsetX, moved: true };
    lanes.move(step);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) lanes.select(lanes.barAt(event.offsetX, event.offsetY));
    drag = null;
  });
}

/** `#search=add&timeline=1` opens the page on a hit, so that a finding can be linked to. */
function openLink(lanes) {
  const wanted = new URLSearchParams(location.hash.slice(1));
  if (!lanes) return;
  if (wanted.has("timeline")) {
    byId("lane-choice").value = wanted.get("timeline");
    lanes.use(Number(wanted.get("timeline")));
  }
  if (wanted.has("search")) {
    byId("lane-search").value = wanted.get("search");
    lanes.find(wanted.get("search"));
    byId("swimlane").scrollIntoView({ block: "nearest" });
  }
}

startSeries();
const lanes = startSwimlane();
if (run.roofline && byId("roofline-chart")) drawRoofline(byId("roofline-chart"), run.roofline);
startTheme(() => lanes && lanes.draw());
openLink(lanes);
