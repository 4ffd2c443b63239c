// What all figures that move share: SVG by hand, controls that the keyboard reaches, numbers as text.
// A colour is a variable of the page, for its light and its dark theme; beside it stands what a picture alone shows.
const BLUE = "var(--live-blue, #0072b2)";
const ORANGE = "var(--live-orange, #c44e00)";
const GREEN = "var(--live-green, #00795a)";
const GREY = "var(--live-grey, #6b6b6b)";
const INK = "var(--live-ink, #222222)";
const PAPER = "var(--live-paper, #ffffff)";

const SVG = "http://www.w3.org/2000/svg";

function element(namespace, tag, attributes = {}, ...children) {
  const made = namespace ? document.createElementNS(namespace, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const html = (tag, attributes, ...children) => element(null, tag, attributes, ...children);

const rounded = (value) => (typeof value === "number" ? Number(value.toFixed(1)) : value);

function svg(tag, attributes = {}, ...children) {
  const short = Object.entries(attributes).map(([name, value]) => [name, rounded(value)]);
  return element(SVG, tag, Object.fromEntries(short), ...children);
}

const line = (x1, y1, x2, y2, stroke, more = {}) => svg("line", {x1, y1, x2, y2, stroke, "stroke-width": 2, ...more});

const label = (x, y, text, more = {}) => svg("text", {x, y, fill: INK, ...more}, text);

function path(points, stroke, more = {}) {
  const d = points.map(([x, y], at) => `${at ? "L" : "M"}${rounded(x)} ${rounded(y)}`).join("");
  return svg("path", {d, fill: "none", stroke, "stroke-width": 2, ...more});
}

function arrow(x1, y1, x2, y2, stroke, more = {}) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  const group = svg("g", more, line(x1, y1, x2, y2, stroke));
  if (length > 4) {
    const [u, v] = [((x2 - x1) / length) * 8, ((y2 - y1) / length) * 8];
    const head = [[x2 - u - v / 2, y2 - v + u / 2], [x2, y2], [x2 - u + v / 2, y2 - v - u / 2]];
    group.append(path(head, stroke));
  }
  return group;
}

// Numbers as a reader sees them: a true minus, no more digits than say something.
function text(value, digits = 3) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "no value" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  const plain = size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(1) : value.toFixed(digits);
  return (Number(plain) === 0 ? plain.replace("-", "") : plain).replace(/-/g, "−");
}

const row = (values, digits) => `(${values.map((value) => text(value, digits)).join(", ")})`;

let made = 0;

// A slider; `show` turns its position into words, which a screen reader hears too.
function slider(name, {from, to, step, value, show = String}, changed) {
  const id = `live-control-${made++}`;
  const input = html("input", {id, type: "range", min: from, max: to, step, value});
  const output = html("output", {for: id});
  const say = () => {
    output.textContent = show(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => {
    say();
    changed();
  });
  say();
  return {node: html("div", {}, html("label", {for: id}, name), input, output), get: () => Number(input.value)};
}

function choice(name, options, changed) {
  const id = `live-control-${made++}`;
  const select = html("select", {id}, ...Object.keys(options).map((key) => html("option", {value: key}, key)));
  select.addEventListener("change", changed);
  return {node: html("div", {}, html("label", {for: id}, name), select), get: () => options[select.value]};
}

function button(name, pressed, more = {}) {
  const node = html("button", {type: "button", ...more}, name);
  node.addEventListener("click", pressed);
  return node;
}

// What can be dragged along one direction of the picture, or moved with the arrow keys.
function handle(shape, name, {from, to, step, get, set, move}) {
  const attributes = {tabindex: 0, role: "slider", "aria-label": name, "aria-valuemin": from, "aria-valuemax": to};
  for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
  shape.classList.add("live-handle");
  const put = (value) => set(Math.min(to, Math.max(from, Math.round(value / step) * step)));
  const keys = {ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 5, PageDown: -5};
  shape.addEventListener("keydown", (event) => {
    const ends = {Home: from, End: to};
    if (!(event.key in keys) && !(event.key in ends)) return;
    event.preventDefault();
    put(event.key in ends ? ends[event.key] : get() + keys[event.key] * step);
  });
  shape.addEventListener("pointerdown", (event) => {
    shape.setPointerCapture(event.pointerId);
    shape.focus();
    event.preventDefault();
  });
  shape.addEventListener("pointermove", (event) => {
    if (!shape.hasPointerCapture(event.pointerId)) return;
    const drawing = shape.parentNode.getScreenCTM();
    put(move(new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.inverse())));
  });
  return (value) => {
    shape.setAttribute("aria-valuenow", rounded(value));
    shape.setAttribute("aria-valuetext", text(value, 2));
  };
}

// The axis of a plot: from a value to a place, straight or logarithmic.
function scale(from, to, start, end, logarithmic = false) {
  const f = logarithmic ? Math.log10 : (value) => value;
  return (value) => start + ((f(value) - f(from)) / (f(to) - f(from))) * (end - start);
}

const range = (n, value) => Array.from({length: n}, (_, at) => value(at));

const power = (exponent) =>
  "10" + String(exponent).replace(/[-\d]/g, (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]);

// Puts a live figure in place of the picture that the page shows without it; on paper the picture comes back. A figure
// of two halves, side by side up to `split` and from there on, has them below one another on a narrow screen.
function figure(name, {width, height, split, start}) {
  const begin = () => {
    const home = document.getElementById(`fig-live-${name}`);
    const picture = home?.querySelector("img");
    if (!picture) return;
    const [left, right] = [svg("g"), svg("g")];
    const drawing = svg("svg", {viewBox: `0 0 ${width} ${height}`, "font-size": 14, "font-family": "sans-serif"}, left, right);
    drawing.setAttribute("role", "group");
    drawing.setAttribute("aria-label", picture.alt);
    if (split) {
      const narrow = window.matchMedia("(max-width: 40rem)");
      const arrange = () => {
        const wide = Math.max(split, width - split);
        drawing.setAttribute("viewBox", narrow.matches ? `0 0 ${wide} ${2 * height}` : `0 0 ${width} ${height}`);
        if (narrow.matches) right.setAttribute("transform", `translate(${-split} ${height})`);
        else right.removeAttribute("transform");
      };
      narrow.addEventListener("change", arrange);
      arrange();
    }
    const controls = html("div", {class: "live-controls"});
    const words = html("p", {class: "live-words", "aria-live": "polite"});
    const scroll = html("div", {class: split ? "" : "live-wide"}, drawing);
    // where it scrolls, the keyboard reaches it
    const reach = () => scroll.setAttribute("tabindex", scroll.scrollWidth > scroll.clientWidth ? 0 : -1);
    new ResizeObserver(reach).observe(scroll);
    const box = html("div", {class: "live", "data-live": name}, scroll, controls, words);
    start({left, right, controls, words});
    const shown = picture.closest("a") ?? picture;
    shown.classList.add("live-picture");
    shown.before(box);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
}
