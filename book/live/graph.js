// LayerNorm's backward pass, one cotangent at a time, on the row (0, 0, 2, 2); an arrow that is cut brings nothing back.
const NODES = {
  x: [50, 190], mean: [170, 70], q: [290, 190], v: [390, 70], D: [530, 70], y: [630, 190], L: [760, 190],
};
const EDGES = [
  ["x", "mean", "1/N"], ["x", "q", "1"], ["mean", "q", "−1"], ["q", "v", "2q/N"], ["v", "D", "1/(2D)"],
  ["D", "y", "−qw/D²"], ["q", "y", "w/D"], ["y", "L", "dy"],
];
const ROW = {x: [[0, 0, 2, 2]], dy: [[1, 0, 0, 0]], w: [1, 1, 1, 1], eps: 0};
// After each step: what is known, and the arrows along which it came.
const STEPS = [
  {name: "dy", node: "y", along: ["y_L"]},
  {name: "dD", node: "D", along: ["D_y"]},
  {name: "dv", node: "v", along: ["v_D"]},
  {name: "dq", node: "q", along: ["q_v", "q_y"]},
  {name: "dmean", node: "mean", along: ["mean_q"]},
  {name: "dx", node: "x", along: ["x_mean", "x_q"]},
];
const ARROWS = EDGES.map(([from, to]) => `${from}_${to}`).filter((name) => name !== "y_L");

figure("graph", {
  width: 800,
  height: 260,
  start({left, controls, words}) {
    const cut = new Set();
    let step = STEPS.length - 1;
    // MathJax sets a formula when it comes into view, and until then must not lose it: all stand there, one is shown.
    // Between its terms a line may end.
    const formulas = Object.entries(EQUATIONS).map(([name, latex]) => {
      const terms = latex.split(/ (?=[=+-] )/).map((term) => `\\({}${term}\\)`);
      return html("div", {class: "mathjax_process", hidden: "", "data-name": name}, terms.join(" "));
    });
    const formula = html("div", {class: "live-formula"}, ...formulas);
    const arrows = Object.fromEntries(EDGES.map(([from, to, slope]) => [`${from}_${to}`, drawEdge(from, to, slope)]));
    left.append(...Object.values(arrows).map(({group}) => group));
    const nodes = Object.fromEntries(Object.keys(NODES).map((name) => [name, drawNode(name)]));
    left.append(...Object.values(nodes).map(({group}) => group));

    const values = (without) => {
      const passes = Object.fromEntries(ARROWS.map((name) => [name, without.has(name) ? 0 : 1]));
      const found = graph({...ROW, ...passes});
      const one = ({dD, dv, dq, dmean, dx}) => ({dy: ROW.dy[0], dD: dD[0], dv: dv[0], dq: dq[0], dmean: dmean[0], dx: dx[0]});
      return one(found);
    };
    const say = (value) => (Array.isArray(value) ? row(value, 2) : text(value, 2));

    const draw = () => {
      const [mine, right] = [values(cut), values(new Set())];
      const reached = STEPS.slice(0, step + 1);
      for (const [name, {group, stroke}] of Object.entries(arrows)) {
        const used = reached.some(({along}) => along.includes(name));
        stroke(cut.has(name) ? GREY : used ? ORANGE : BLUE, cut.has(name));
        if (name !== "y_L") group.setAttribute("aria-checked", cut.has(name) ? "false" : "true");
      }
      for (const {name, node} of STEPS) nodes[node].show(reached.some((one) => one.name === name) ? name : "");
      const {name} = STEPS[step];
      for (const one of formulas) one.hidden = one.dataset.name !== name;
      const wrong = cut.size && say(mine[name]) !== say(right[name]);
      const told = [`Step ${step + 1} of ${STEPS.length}: ${name} = ${say(mine[name])}`];
      if (wrong) told.push(`Wrong: without the cut it is ${say(right[name])}.`);
      else if (cut.size && step === STEPS.length - 1) told.push("Right on this row, although an arrow is cut.");
      words.replaceChildren(...told.map((one) => html("span", {}, one)));
      over.disabled = back.disabled = step === 0;
      next.disabled = step === STEPS.length - 1;
    };
    const go = (by) => () => {
      step = Math.max(0, Math.min(STEPS.length - 1, step + by));
      draw();
    };
    const over = button("start over", go(-STEPS.length));
    const back = button("back", go(-1));
    const next = button("next", go(1));
    const mend = button("mend all arrows", () => {
      cut.clear();
      draw();
    });
    for (const name of ARROWS) {
      const {group} = arrows[name];
      const turn = () => {
        cut[cut.has(name) ? "delete" : "add"](name);
        draw();
      };
      group.addEventListener("click", turn);
      group.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        turn();
      });
    }
    controls.append(html("div", {}, over, back, next, mend));
    controls.after(formula);
    draw();
    window.normgradTypeset?.(formula);
  },
});

function drawEdge(from, to, slope) {
  const [[x1, y1], [x2, y2]] = [NODES[from], NODES[to]];
  const length = Math.hypot(x2 - x1, y2 - y1);
  const [u, v] = [(x2 - x1) / length, (y2 - y1) / length];
  // Backward: from the quantity that was computed to the one that it was computed from.
  const ends = [x2 - 28 * u, y2 - 28 * v, x1 + 28 * u, y1 + 28 * v];
  const [x, y] = [(x1 + x2) / 2, (y1 + y2) / 2];
  const wide = 12 + 8 * slope.length;
  const group = svg("g");
  if (to !== "L") {
    const known = {tabindex: 0, role: "switch", "aria-label": `arrow from ${to} back to ${from}`};
    for (const [name, value] of Object.entries(known)) group.setAttribute(name, value);
  }
  const stroke = (color, gone) => {
    group.replaceChildren(
      line(...ends, "transparent", {"stroke-width": 36}),
      arrow(...ends, color, gone ? {"stroke-dasharray": "3 6"} : {}),
      svg("rect", {x: x - wide / 2, y: y - 11, width: wide, height: 22, fill: PAPER}),
      label(x, y + 5, gone ? "cut" : slope, {"text-anchor": "middle", fill: gone ? GREY : INK}),
    );
  };
  return {group, stroke};
}

function drawNode(name) {
  const [cx, cy] = NODES[name];
  const group = svg("g");
  const show = (cotangent) => {
    group.replaceChildren(
      svg("circle", {cx, cy, r: 26, fill: PAPER, stroke: cotangent ? ORANGE : BLUE, "stroke-width": "xq".includes(name) ? 4 : 1.5}),
      label(cx, cy + 5, cotangent || name, {"text-anchor": "middle", fill: cotangent ? ORANGE : INK}),
    );
  };
  show("");
  return {group, show};
}
