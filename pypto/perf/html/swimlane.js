"use strict";

const ROW = 18, LABELS = 190, AXIS = 22;

/** Columns of a timeline with the indices that drawing and searching need. */
class Timeline {
  constructor(raw) {
    Object.assign(this, raw);
    this.start = Float64Array.from(raw.start);
    for (let i = 1; i < this.start.length; i++) this.start[i] += this.start[i - 1];
    this.dur = Float64Array.from(raw.dur);
    this.count = this.start.length;
    this.byRow = raw.rows.map(() => []);
    this.end = 0;
    for (let i = 0; i < this.count; i++) {
      this.byRow[raw.row[i]].push(i);
      this.end = Math.max(this.end, this.start[i] + this.dur[i]);
    }
    for (const bars of this.byRow) bars.sort((a, b) => this.start[a] - this.start[b]);
    this.isCritical = new Uint8Array(this.count);
    for (const bar of raw.critical) this.isCritical[bar] = 1;
    this.linked = new Map();
    raw.arrows.forEach(([source, target], index) => {
      for (const bar of [source, target]) {
        if (!this.linked.has(bar)) this.linked.set(bar, []);
        this.linked.get(bar).push(index);
      }
    });
  }

  label(bar) { return this.names[this.name[bar]]; }

  lane(bar) { return this.lanes[this.rows[this.row[bar]]]; }

  /** First position in a row whose bar ends at or after `time`. */
  firstFrom(bars, time) {
    let low = 0, high = bars.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[bars[middle]] + this.dur[bars[middle]] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  search(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const matching = new Uint8Array(this.names.length);
    this.names.forEach((name, code) => { matching[code] = name.toLowerCase().includes(wanted) ? 1 : 0; });
    const hits = [];
    for (let i = 0; i < this.count; i++) if (matching[this.name[i]]) hits.push(i);
    return hits.sort((a, b) => this.start[a] - this.start[b]);
  }
}

function microseconds(ns) {
  return (ns / 1000).toLocaleString("en", { maximumFractionDigits: 3 }) + " us";
}

function hueOf(text) {
  let hash = 0;
  const stem = text.replace(/\(.*$/, "");
  for (let i = 0; i < stem.length; i++) hash = (hash * 31 + stem.charCodeAt(i)) >>> 0;
  return hash % 360;
}

class Swimlane {
  constructor(timelines, page) {
    this.timelines = timelines.map((raw) => new Timeline(raw));
    this.page = page;
    this.canvas = page.canvas;
    this.hits = [];
    this.isHit = new Uint8Array(0);
    this.use(0);
  }

  use(index) {
    this.data = this.timelines[index];
    this.hues = this.data.names.map(hueOf);
    this.selected = -1;
    this.find("");
    this.fit();
  }

  fit() {
    this.from = 0;
    this.to = Math.max(1, this.data.end);
    this.draw();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    const span = Math.max(10, Math.min(this.data.end * 1.2 + 10, (this.to - this.from) * factor));
    const share = (at - this.from) / (this.to - this.from);
    this.from = at - share * span;
    this.to = this.from + span;
    this.draw();
  }

  move(share) {
    const step = (this.to - this.from) * share;
    this.from += step;
    this.to += step;
    this.draw();
  }

  x(time) { return LABELS + ((time - this.from) / (this.to - this.from)) * (this.width - LABELS); }

  time(x) { return this.from + ((x - LABELS) / (this.width - LABELS)) * (this.to - this.from); }

  y(row) { return AXIS + row * ROW; }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.parentElement.clientWidth || 1000;
    this.height = this.y(this.data.rows.length) + 4;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  draw() {
    this.resize();
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => style.getPropertyValue(name).trim();
    const context = this.context;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.clearRect(0, 0, this.width, this.height);
    this.drawLanes();
    let drawn = 0;
    for (let row = 0; row < this.data.rows.length; row++) drawn += this.drawRow(row);
    this.drawArrows();
    this.canvas.dataset.drawn = drawn;
  }

  drawLanes() {
    const context = this.context;
    context.fillStyle = this.colour("--dim");
    const step = (this.to - this.from) / 6;
    for (let tick = 0; tick <= 6; tick++) {
      const time = this.from + tick * step;
      context.fillText(microseconds(time), Math.min(this.x(time) + 3, this.width - 80), AXIS / 2);
    }
    for (const lane of this.data.lanes) {
      context.fillStyle = this.colour("--line");
      context.fillRect(0, this.y(lane.row), this.width, 1);
      context.fillStyle = this.colour("--dim");
      context.fillText(`${lane.process} · ${lane.thread}`.slice(-34), 4, this.y(lane.row) + ROW / 2, LABELS - 8);
    }
  }

  drawRow(row) {
    const bars = this.data.byRow[row], context = this.context;
    let covered = -1, drawn = 0;
    for (let at = this.data.firstFrom(bars, this.from); at < bars.length; at++) {
      const bar = bars[at];
      if (this.data.start[bar] > this.to) break;
      const left = Math.max(LABELS, this.x(this.data.start[bar]));
      const right = Math.min(this.width, Math.max(left + 1, this.x(this.data.start[bar] + this.data.dur[bar])));
      const marked = this.isHit[bar] || bar === this.selected;
      if (right <= covered && !marked) continue;
      covered = Math.ceil(right);
      drawn += 1;
      this.drawBar(context, bar, left, right, row, marked);
    }
    return drawn;
  }

  drawBar(context, bar, left, right, row, marked) {
    const faded = this.page.criticalOnly.checked && !this.data.isCritical[bar];
    context.globalAlpha = faded && !marked ? 0.18 : 1;
    context.fillStyle = this.isHit[bar] ? this.colour("--hit") : `hsl(${this.hues[this.data.name[bar]]} 55% ${this.colour("--bar")})`;
    context.fillRect(left, this.y(row) + 2, Math.max(1, right - left), ROW - 4);
    if (bar === this.selected) {
      context.strokeStyle = this.colour("--text");
      context.lineWidth = 2;
      context.strokeRect(left, this.y(row) + 2, Math.max(2, right - left), ROW - 4);
    }
    if (right - left > 40) {
      context.save();
      context.beginPath();
      context.rect(left, this.y(row), right - left, ROW);
      context.clip();
      context.fillStyle = this.colour("--bg");
      context.fillText(this.data.label(bar), left + 4, this.y(row) + ROW / 2);
      context.restore();
    }
    context.globalAlpha = 1;
  }

  drawArrows() {
    const all = this.page.allArrows.checked;
    const wanted = all ? this.data.arrows.map((_, index) => index) : this.data.linked.get(this.selected) || [];
    let drawn = 0;
    for (const index of wanted) {
      const [source, target, broken] = this.data.arrows[index];
      const x1 = this.x(this.data.start[source] + this.data.dur[source]), x2 = this.x(this.data.start[target]);
      if (Math.max(x1, x2) < LABELS || Math.min(x1, x2) > this.width || drawn >= 5000) continue;
      this.drawArrow(x1, this.y(this.data.row[source]) + ROW / 2, x2, this.y(this.data.row[target]) + ROW / 2, broken);
      drawn += 1;
    }
    this.canvas.dataset.arrows = drawn;
  }

  drawArrow(x1, y1, x2, y2, broken) {
    const context = this.context;
    context.save();
    context.beginPath();
    context.rect(LABELS, 0, this.width - LABELS, this.height);
    context.clip();
    context.strokeStyle = context.fillStyle = this.colour(broken ? "--bad" : "--accent");
    context.lineWidth = 1.2;
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1 + 24, y1, x2 - 24, y2, x2, y2);
    context.stroke();
    context.beginPath();
    context.moveTo(x2, y2);
    context.lineTo(x2 - 6, y2 - 3);
    context.lineTo(x2 - 6, y2 + 3);
    context.fill();
    context.restore();
  }

  barAt(x, y) {
    const row = Math.floor((y - AXIS) / ROW);
    if (x < LABELS || row < 0 || row >= this.data.rows.length) return -1;
    const slack = (this.to - this.from) / (this.width - LABELS), time = this.time(x);
    const bars = this.data.byRow[row], at = this.data.firstFrom(bars, time - slack);
    return at < bars.length && this.data.start[bars[at]] <= time + slack ? bars[at] : -1;
  }

  select(bar) {
    this.selected = bar;
    this.page.detail.textContent = bar < 0 ? "Nothing selected." : this.describe(bar);
    this.draw();
  }

  describe(bar) {
    const data = this.data, lane = data.lane(bar);
    const links = (data.linked.get(bar) || []).map((index) => data.arrows[index]);
    const names = (bars) => (bars.length ? bars.slice(0, 8).map((b) => data.label(b)).join(", ") : "none");
    const before = links.filter(([, target]) => target === bar).map(([source]) => source);
    const after = links.filter(([source]) => source === bar).map(([, target]) => target);
    return `${data.label(bar)} on ${lane.process} · ${lane.thread}\n` +
      `start ${microseconds(data.start[bar])}, duration ${microseconds(data.dur[bar])}` +
      `${data.isCritical[bar] ? ", on the critical path" : ""}\nwaits for: ${names(before)}; feeds: ${names(after)}`;
  }

  /** Select a bar and bring it into view. */
  show(bar) {
    const middle = this.data.start[bar] + this.data.dur[bar] / 2;
    const span = Math.min(this.to - this.from, Math.max(this.data.dur[bar] * 12, 1000));
    this.from = Math.max(0, Math.min(middle - span / 2, Math.max(this.data.end, 1) - span));
    this.to = this.from + span;
    this.select(bar);
    const scroll = this.canvas.parentElement, y = this.y(this.data.row[bar]);
    if (y < scroll.scrollTop || y > scroll.scrollTop + scroll.clientHeight - ROW) scroll.scrollTop = y - scroll.clientHeight / 2;
  }

  find(text) {
    this.hits = this.data.search(text);
    this.hit = -1;
    this.isHit = new Uint8Array(this.data.count);
    for (const bar of this.hits) this.isHit[bar] = 1;
    this.page.status.textContent = !text.trim() ? `${this.data.count.toLocaleString("en")} slices, ` +
      `${this.data.arrows.length.toLocaleString("en")} arrows` : this.hits.length ? "" : `no hit for “${text}”`;
    if (this.hits.length) this.step(1);
  }

  step(direction) {
    if (!this.hits.length) return;
    this.hit = (this.hit + direction + this.hits.length) % this.hits.length;
    const bar = this.hits[this.hit];
    this.page.status.textContent = `hit ${this.hit + 1} of ${this.hits.length}: ${this.data.label(bar)}`;
    this.show(bar);
  }

  /** The bar beside the selected one in its row, or the first bar of the next row that has one. */
  neighbour(sideways, down) {
    const data = this.data;
    if (this.selected < 0) return data.byRow.find((bars) => bars.length)[0];
    let row = data.row[this.selected];
    if (sideways) return data.byRow[row][data.byRow[row].indexOf(this.selected) + sideways] ?? this.selected;
    for (row += down; row >= 0 && row < data.byRow.length; row += down) {
      const bars = data.byRow[row];
      if (bars.length) return bars[Math.min(bars.length - 1, data.firstFrom(bars, data.start[this.selected]))];
    }
    return this.selected;
  }
}
