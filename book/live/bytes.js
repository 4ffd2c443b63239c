// The least bytes that LayerNorm moves and the time they take at a device's bandwidth.
const DTYPES = {bfloat16: 2, float32: 4, float16: 2};
const KERNELS = [
  {name: "forward", key: "forward"},
  {name: "backward", key: "backward"},
  {name: "with residual, forward", key: "add_forward"},
  {name: "with residual, backward", key: "add_backward"},
];

function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const at = Math.min(4, Math.max(0, Math.floor(Math.log10(bytes) / 3)));
  return `${text(bytes / 1000 ** at, at ? 1 : 0)} ${units[at]}`;
}

function time(seconds) {
  return seconds >= 1e-3 ? `${text(seconds * 1e3, 2)} ms` : `${text(seconds * 1e6, seconds < 1e-5 ? 2 : 1)} µs`;
}

figure("bytes", {
  width: 640,
  height: 250,
  start({left, controls, words}) {
    const draw = () => {
      const [M, N] = [2 ** rows.get(), 2 ** columns.get()];
      const dtype = dtypes.node.querySelector("select").value;
      const found = floor({M, N, e: DTYPES[dtype]});
      drawBars(left, found, devices.get());
      const entries = `${text(found.forward / M / N, 2)} bytes per entry forward, ${text(found.backward / M / N, 2)} backward`;
      const about = "Computed, not measured.";
      words.replaceChildren(html("span", {}, `${entries}.`), html("span", {}, about));
    };
    const two = (value) => String(2 ** value);
    const rows = slider("rows M", {from: 0, to: 17, step: 1, value: 14, show: two}, draw);
    const columns = slider("columns N", {from: 5, to: 16, step: 1, value: 12, show: two}, draw);
    const dtypes = choice("dtype", DTYPES, draw);
    const devices = choice("device", BANDWIDTHS, draw);
    controls.append(rows.node, columns.node, dtypes.node, devices.node);
    draw();
  },
});

function drawBars(group, found, bandwidth) {
  const times = KERNELS.map(({key}) => found[key] / bandwidth);
  const across = scale(0, Math.max(...times), 170, 480);
  group.replaceChildren(label(170, 20, "bytes over the bandwidth of the datasheet"));
  KERNELS.forEach(({name, key}, at) => {
    const y = 38 + 52 * at;
    group.append(
      label(162, y + 22, name, {"text-anchor": "end"}),
      svg("rect", {x: 170, y, width: across(times[at]) - 170, height: 34, fill: BLUE, "fill-opacity": 0.35, stroke: BLUE}),
      label(across(times[at]) + 8, y + 22, `${time(times[at])}, ${size(found[key])}`),
    );
  });
}
