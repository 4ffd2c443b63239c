// Where eps stands: kappa against the size of a row, and dx of one row, for the three placements.
const PLACES = [
  {name: "inside", norm: norm_inside, color: BLUE, dash: ""},
  {name: "outside", norm: norm_outside, color: ORANGE, dash: "7 3"},
  {name: "clamp", norm: norm_clamp, color: GREEN, dash: "2 3"},
];
const DIRECTION = [-1.2, -0.2, 1.4].map((value) => value / Math.sqrt((1.44 + 0.04 + 1.96) / 3));
const COTANGENT = [1, -0.5, 0.25];

function through(norm, size, eps) {
  const zeros = [[0, 0, 0]];
  const x = [DIRECTION.map((value) => size * value)];
  const found = norm({
    x, dy: [COTANGENT], residual: zeros, dresidual_out: zeros, w: [1, 1, 1], b: [0, 0, 0], a: 0, c: 1, w0: 0, eps, n: 3,
  });
  return {kappa: found.kappa[0], dx: found.dp[0], y: found.y[0]};
}

figure("eps", {
  width: 640,
  height: 290,
  split: 350,
  start({left, right, controls, words}) {
    const draw = () => {
      const [size, eps] = [10 ** sizes.get(), 10 ** epsilons.get()];
      drawCurves(left, size, eps);
      drawBars(right, size, eps);
      const said = PLACES.map(({name, norm}) => {
        const {kappa, dx} = through(norm, size, eps);
        return `${name}: κ = ${text(kappa, 2)}, dx = ${row(dx.map((value) => value * size))} / s`;
      });
      words.replaceChildren(...said.map((one) => html("span", {}, one)));
    };
    const shown = (exponent) => text(10 ** exponent, 3);
    const sizes = slider("size s of the row", {from: -3, to: 2, step: 0.1, value: 0, show: shown}, draw);
    const epsilons = slider("eps", {from: -4, to: 1, step: 0.1, value: -0.3, show: shown}, draw);
    controls.append(sizes.node, epsilons.node);
    draw();
  },
});

function drawCurves(group, size, eps) {
  const across = scale(1e-3, 1e2, 46, 330, true);
  const up = scale(0, 4, 236, 30);
  group.replaceChildren(
    line(46, 236, 330, 236, GREY, {"stroke-width": 1}),
    line(46, 236, 46, 30, GREY, {"stroke-width": 1}),
    label(188, 280, "size s of the row", {"text-anchor": "middle"}),
    label(46, 20, "κ = D D′ / s"),
    ...[-3, -2, -1, 0, 1, 2].map((at) => label(across(10 ** at), 254, power(at), {"text-anchor": "middle", "font-size": 12})),
    ...[0, 1, 2, 3, 4].map((at) => label(38, up(at) + 4, String(at), {"text-anchor": "end", "font-size": 12})),
    line(across(size), 236, across(size), 30, INK, {"stroke-width": 1, "stroke-dasharray": "2 2"}),
  );
  for (const {name, norm, color, dash} of PLACES) {
    const points = range(201, (at) => 10 ** (-3 + at / 40)).map((s) => [s, through(norm, s, eps).kappa]);
    const inside = points.filter(([, kappa]) => kappa <= 4).map(([s, kappa]) => [across(s), up(kappa)]);
    group.append(path(inside, color, {"stroke-dasharray": dash}));
    const {kappa} = through(norm, size, eps);
    if (kappa <= 4) group.append(svg("circle", {cx: across(size), cy: up(kappa), r: 5, fill: color}, svg("title", {}, name)));
  }
}

function drawBars(group, size, eps) {
  const up = scale(-1, 1, 236, 30);
  group.replaceChildren(
    label(370, 20, "dx · s, entry by entry"),
    line(370, up(0), 630, up(0), GREY, {"stroke-width": 1}),
  );
  PLACES.forEach(({name, norm, color}, place) => {
    const {dx} = through(norm, size, eps);
    dx.forEach((value, at) => {
      const height = Math.max(-1, Math.min(1, value * size));
      const x = 376 + 88 * place + 24 * at;
      group.append(
        svg("rect", {x, y: Math.min(up(0), up(height)), width: 20, height: Math.abs(up(height) - up(0)), fill: color}),
      );
    });
    group.append(label(410 + 88 * place, 254, name, {"text-anchor": "middle", fill: color}));
  });
}
