// The error of a central difference against its step; which wrong gradients a test with this step and tolerance passes.
const FORMATS = {
  float64: 53,
  float32: 24,
  float16: 11,
  bfloat16: 8,
};
const CLAIMS = {
  right: "the right dx",
  without_c1: "c1 forgotten",
  without_c2: "c2 forgotten",
  sign_of_c1: "sign of c1",
  weight_forgotten: "weight forgotten",
  n_minus_1: "N − 1 in place of N",
  eps_forgotten: "eps forgotten",
};
const EPS = 1e-5;

// To the nearest number with so many bits in its significand; exponents are not limited.
function rounding(bits) {
  if (bits === 53) return (value) => value;
  return (value) => {
    const shifted = value * (2 ** (53 - bits) + 1);
    return Number.isFinite(shifted) ? shifted - (shifted - value) : value;
  };
}

// Numbers that look drawn at random and are the same for every reader.
function drawn(count, seed) {
  let state = seed;
  return range(count, () => {
    state = (state * 48271) % 2147483647;
    return 2 * (state / 2147483647) - 1;
  });
}

function problem(N, bits) {
  const f = rounding(8);
  const [x0, x_dot, w, b, dy] = [3, 5, 7, 11, 13].map((seed) => drawn(N, 1000 * seed + 17).map((value) => f(2 * value)));
  const inputs = {x0: [x0], x_dot: [x_dot], w: w.map((value) => value + 1.5), b, dy: [dy], eps: EPS};
  const at = (h) => loss({...inputs, h}, rounding(bits)).L;
  return {claims: claimed({...inputs, h: 0}), difference: (h) => (at(h) - at(-h)) / (2 * h)};
}

figure("v-curve", {
  width: 640,
  height: 330,
  start({left, controls, words}) {
    const verdicts = html("ul", {class: "live-verdicts"});
    const draw = () => {
      const bits = formats.get();
      const [N, h, tolerance] = [2 ** lengths.get(), 2 ** steps.get(), 10 ** tolerances.get()];
      const {claims, difference} = problem(N, bits);
      const error = (found) => Math.abs(found / claims.right - 1);
      const curve = range(53, (at) => 2 ** -at).map((step) => [step, error(difference(step))]);
      drawCurve(left, curve, {h, tolerance, here: error(difference(h)), best: 2 ** (-bits / 3)});
      const found = Object.entries(CLAIMS).map(([name, words_]) => {
        const passes = Math.abs(difference(h) - claims[name]) <= tolerance * Math.abs(claims.right);
        const fine = passes === (name === "right");
        return html("li", {class: fine ? "live-right" : "live-wrong"}, `${words_}: ${passes ? "passes" : "rejected"}`);
      });
      verdicts.replaceChildren(...found);
      const wrong = found.filter((one) => one.className === "live-wrong").length;
      words.textContent = wrong
        ? `With this step and tolerance the test gives ${wrong} wrong answer${wrong > 1 ? "s" : ""}.`
        : "With this step and tolerance the test rejects every wrong gradient and passes the right one.";
    };
    const formats = choice("format", FORMATS, draw);
    const lengths = slider("N", {from: 1, to: 7, step: 1, value: 3, show: (value) => String(2 ** value)}, draw);
    const steps = slider("step h", {from: -52, to: 0, step: 1, value: -18, show: (value) => text(2 ** value, 4)}, draw);
    const tolerances = slider("tolerance", {from: -12, to: 0, step: 0.5, value: -5, show: (value) => text(10 ** value, 4)}, draw);
    controls.append(formats.node, lengths.node, steps.node, tolerances.node);
    words.after(verdicts);
    draw();
  },
});

function drawCurve(group, curve, {h, tolerance, here, best}) {
  const across = scale(2 ** -52, 1, 60, 620, true);
  const up = scale(1e-16, 10, 285, 30, true);
  const into = (value) => Math.min(10, Math.max(1e-16, value));
  const known = curve.filter(([, error]) => Number.isFinite(error)).map(([step, error]) => [across(step), up(into(error))]);
  group.replaceChildren(
    svg("rect", {x: 60, y: up(tolerance), width: 560, height: 285 - up(tolerance), fill: GREEN, "fill-opacity": 0.12}),
    line(60, 285, 620, 285, GREY, {"stroke-width": 1}),
    line(60, 285, 60, 30, GREY, {"stroke-width": 1}),
    label(60, 18, "relative error of the central difference"),
    label(340, 325, "step h", {"text-anchor": "middle"}),
    label(616, up(tolerance) - 5, "tolerance", {"text-anchor": "end", fill: GREEN}),
    ...[-15, -12, -9, -6, -3, 0].flatMap((at) => [
      label(across(10 ** at), 303, power(at), {"text-anchor": "middle", "font-size": 12}),
      label(54, up(10 ** at) + 4, power(at), {"text-anchor": "end", "font-size": 12}),
    ]),
    line(across(best), 285, across(best), 30, GREY, {"stroke-dasharray": "2 4", "stroke-width": 1}),
    label(across(best) + 4, 44, "u^(1/3)", {fill: GREY, "font-size": 12}),
    path(known, BLUE),
    line(across(h), 285, across(h), 30, ORANGE, {"stroke-width": 1.5}),
    svg("circle", {cx: across(h), cy: up(into(here)), r: 6, fill: ORANGE}),
  );
}
