// One row of three numbers: where it lands, what of dy comes back as dx, what is taken away, and the whole Jacobian.
const LAYERS = {
  LayerNorm: {a: 1, n: 3, radius: Math.sqrt(3)},
  RMSNorm: {a: 0, n: 3, radius: Math.sqrt(3)},
  "L2 normalization": {a: 0, n: 1, radius: 1},
};
const ALONG = [1, 1, 1].map((one) => one / Math.sqrt(3));
const UNITS = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];

const inner = (u, v) => u.reduce((total, value, at) => total + value * v[at], 0);
const times = (factor, v) => v.map((value) => factor * value);
const minus = (u, v) => u.map((value, at) => value - v[at]);
const plus = (u, v) => u.map((value, at) => value + v[at]);

function backward(layer, eps, x, dys) {
  const same = (value) => dys.map(() => value);
  const found = norm_inside({
    x: same(x), dy: dys, residual: same([0, 0, 0]), dresidual_out: same([0, 0, 0]),
    w: [1, 1, 1], b: [0, 0, 0], a: layer.a, c: 1, w0: 0, eps, n: layer.n,
  });
  return {y: found.y[0], gradients: found.dp, rstd: 1 / Math.sqrt(found.s[0] ** 2 + eps)};
}

// A view of space from the side: two directions across the line of sight, one of them nearly upright.
const RIGHT = [0.486, 0.874, 0];
const UP = [-0.206, 0.115, 0.972];

// What is 0 up to rounding is shown as 0.
const settled = (value) => (Math.abs(value) < 1e-12 ? 0 : value);

figure("jacobian", {
  width: 700,
  height: 420,
  split: 340,
  start({left, right, controls, words}) {
    const x = [1.6, -0.4, 0.3];
    const dy = [0.2, 1.2, 0.4];
    const heat = svg("g");
    const labels = [];
    const draw = () => {
      const layer = layers.get();
      const eps = 10 ** epsilons.get();
      const {y, gradients, rstd} = backward(layer, eps, x, [dy, ...UNITS]);
      const [dx, ...jacobian] = gradients;
      drawSpace(left, layer, x, y, dy, dx);
      setBars({x, dy, dx, y});
      drawJacobian(heat, jacobian);
      for (const {name, at, say} of labels) say({x, dy}[name][at]);
      const [sum_, along] = [inner(dx, [1, 1, 1]), inner(dx, y)].map((value) => text(settled(value), 3));
      const size = layer.n === 3 ? Math.sqrt(inner(y, y) / 3) : Math.sqrt(inner(y, y));
      words.replaceChildren(
        html("span", {}, `output ${row(y, 2)}, of size ${text(size, 2)}; rstd ${text(rstd, 2)}`),
        html("span", {}, `dx ${row(dx.map(settled), 2)}, its sum ${sum_}, along the output ${along}`),
      );
    };
    const setBars = drawBars(right, {x, dy}, labels, () => draw());
    right.append(heat);
    const layers = choice("layer", LAYERS, draw);
    const show = (exponent) => text(10 ** exponent, 3);
    const epsilons = slider("eps", {from: -6, to: 1, step: 0.25, value: -5, show}, draw);
    controls.append(layers.node, epsilons.node);
    draw();
  },
});

function drawSpace(group, layer, x, y, dy, dx) {
  const unit = layer.radius === 1 ? 88 : 58;
  const at = (v) => [165 + unit * inner(v, RIGHT), 200 - unit * inner(v, UP)];
  const between = (u, v, color, more) => arrow(...at(u), ...at(v), color, more);
  group.replaceChildren(
    svg("circle", {cx: 165, cy: 200, r: unit * layer.radius, fill: "none", stroke: BLUE, "stroke-width": 1.5}),
    label(10, 20, layer.a ? "the circle: sphere and plane" : "the sphere of outputs"),
  );
  UNITS.forEach((axis, place) => {
    const end = at(times(2.1, axis));
    group.append(line(...at([0, 0, 0]), ...end, GREY, {"stroke-width": 1}), label(end[0] + 3, end[1], `${place + 1}`, {fill: GREY}));
  });
  if (layer.a) {
    const [u, v] = [[1, -1, 0], [1, 1, -2]].map((w) => times(1 / Math.sqrt(inner(w, w)), w));
    const ring = range(73, (step) => {
      const turn = (step / 36) * Math.PI;
      return at(plus(times(layer.radius * Math.cos(turn), u), times(layer.radius * Math.sin(turn), v)));
    });
    group.append(
      path(ring, BLUE, {fill: BLUE, "fill-opacity": 0.1}),
      line(...at(times(-2.4, ALONG)), ...at(times(2.4, ALONG)), GREY, {"stroke-dasharray": "2 4", "stroke-width": 1.5}),
    );
  }
  const size = Math.sqrt(inner(y, y)) || 1;
  const outward = times(1 / size, y);
  const constant = layer.a ? times(inner(dy, ALONG), ALONG) : [0, 0, 0];
  const radial = times(inner(dy, outward), outward);
  group.append(
    line(...at(x), ...at(y), GREY, {"stroke-dasharray": "3 3", "stroke-width": 1}),
    between(y, plus(y, dy), ORANGE),
    between(plus(y, dy), plus(y, minus(dy, constant)), GREY, {"stroke-dasharray": "5 3", "data-part": "constant"}),
    between(plus(y, minus(dy, constant)), plus(y, minus(minus(dy, constant), radial)), GREY, {"stroke-dasharray": "5 3"}),
    between(y, plus(y, dx), GREEN, {"stroke-width": 3}),
    svg("circle", {cx: at(x)[0], cy: at(x)[1], r: 5, fill: PAPER, stroke: INK, "stroke-width": 2}),
    svg("circle", {cx: at(y)[0], cy: at(y)[1], r: 6, fill: BLUE}),
  );
  const key = [["○ row x", INK], ["● output", BLUE], ["→ dy", ORANGE], ["→ dx", GREEN], ["⇢ taken away", GREY]];
  key.forEach(([name, fill], place) => group.append(label(10 + [0, 72, 148, 200, 252][place], 408, name, {fill})));
}

// Bars of x and dy with handles on their ends, bars of dx beside them.
function drawBars(group, given, labels, changed) {
  const up = scale(-2, 2, 185, 25);
  const shift = {x: 345, dy: 465, dx: 585};
  const colors = {x: INK, dy: ORANGE, dx: GREEN};
  const bars = {};
  for (const name of ["x", "dy", "dx"]) {
    group.append(
      line(shift[name], up(0), shift[name] + 100, up(0), GREY, {"stroke-width": 1}),
      label(shift[name] + 50, 210, name === "dx" ? "dx" : `${name}: drag`, {"text-anchor": "middle", fill: colors[name]}),
    );
    bars[name] = range(3, (at) => {
      const left = shift[name] + 6 + 32 * at;
      const bar = svg("rect", {x: left, width: 24, fill: colors[name], "fill-opacity": name === "dx" ? 1 : 0.35});
      group.append(bar);
      if (name === "dx") return {bar};
      const end = svg("rect", {x: left - 2, width: 28, height: 10, rx: 4, fill: colors[name]});
      group.append(end);
      const set = (value) => {
        given[name][at] = value;
        changed();
      };
      const reach = {from: -2, to: 2, step: 0.1, get: () => given[name][at], set, move: ({y}) => ((105 - y) / 80) * 2};
      labels.push({name, at, say: handle(end, `${name}, entry ${at + 1}`, reach)});
      return {bar, end};
    });
  }
  return (values) => {
    for (const [name, parts] of Object.entries(bars)) {
      parts.forEach(({bar, end}, at) => {
        const value = Math.max(-2, Math.min(2, values[name][at]));
        bar.setAttribute("y", rounded(Math.min(up(0), up(value))));
        bar.setAttribute("height", rounded(Math.abs(up(value) - up(0))));
        end?.setAttribute("y", rounded(up(value) - 5));
      });
    }
  };
}

// jacobian[k][j] is the derivative of output k by input j: what comes back for a dy that is 1 at k alone.
function drawJacobian(group, jacobian) {
  const largest = Math.max(...jacobian.flat().map(Math.abs), 1e-300);
  group.replaceChildren(label(345, 246, "Jacobian: output k (down) by input j (across)"));
  jacobian.forEach((values, k) =>
    values.forEach((value, j) => {
      const [x, y] = [345 + 114 * j, 256 + 46 * k];
      const fill = {fill: value < 0 ? ORANGE : BLUE, "fill-opacity": (0.5 * Math.abs(value) / largest).toFixed(2)};
      group.append(
        svg("rect", {x, y, width: 112, height: 44, stroke: GREY, ...fill}),
        label(x + 56, y + 27, text(settled(value), 3), {"text-anchor": "middle"}),
      );
    }),
  );
}
