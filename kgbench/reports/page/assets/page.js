"use strict";
// Text reaches the page through textContent alone; nothing here sets HTML, so what a candidate wrote stays text.
(() => {
  const main = document.getElementById("main");
  const packed = new Map(); // what came from files beside this one
  const waiting = new Map();
  let run = null;
  let charts = []; // those on show, to be drawn again in another theme
  let viewed = 0;
  const asked = { text: "", source: "", kind: "", outcome: "", sort: "", down: false };

  function el(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else made.setAttribute(name, value === true ? "" : String(value));
    }
    made.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== ""));
    return made;
  }

  // --- data ---

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  window.kgbenchData = (name, text) => {
    packed.set(name, text);
    if (waiting.has(name)) waiting.get(name)();
  };

  function packedText(name) {
    const inside = document.getElementById(name);
    if (inside) return Promise.resolve(inside.textContent);
    if (packed.has(name)) return Promise.resolve(packed.get(name));
    return new Promise((found, failed) => {
      waiting.set(name, () => found(packed.get(name)));
      const script = el("script", { src: `data/${name}.js` });
      script.addEventListener("error", () => failed(new Error(`data/${name}.js is not beside this page`)));
      document.body.append(script);
    });
  }

  const problemHash = (id, sample) => `#/problem/${id.split("/").map(encodeURIComponent).join("/")}${sample ? `/${sample}` : ""}`;

  // --- words ---

  const ABSENT = "–";
  const percent = (share) => (share === null || share === undefined ? ABSENT : `${(100 * share).toFixed(0)} %`);
  const ratio = (value) => (value === null ? "?" : value >= 0.1 ? value.toFixed(2) : Number(value.toPrecision(2)).toString());
  const estimate = (three) => (three ? `${ratio(three[0])}x [${ratio(three[1])}, ${ratio(three[2])}]` : ABSENT);
  const figure = (value) => (value === null || value === undefined ? ABSENT : value >= 1000 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(4)).toString());

  const group = (outcome) => run.groups[outcome] || "ours";
  const badge = (outcome) => el("span", { class: "badge" }, el("span", { class: `key o-${group(outcome)}`, "aria-hidden": "true" }), outcome);

  function counted(outcomes) {
    const counts = new Map();
    for (const outcome of outcomes) counts.set(outcome, (counts.get(outcome) || 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1]);
  }
  const outcomeWords = (outcomes) => counted(outcomes).map(([name, count]) => (outcomes.length > 1 ? `${count} ${name}` : name)).join(", ");

  const rank = (name) => run.group_order.indexOf(name);
  const stripes = (outcomes) => outcomes.map(group).sort((a, b) => rank(a) - rank(b)).map((name) => el("i", { class: `o-${name}` }));

  function facts(pairs) {
    return el("dl", { class: "facts" }, pairs.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]));
  }

  function table(caption, columns, rows, more = {}) {
    const head = columns.map(([name, kind]) => el("th", { scope: "col", class: kind }, name));
    const body = rows.map((row) => el("tr", {}, row.map((cell, number) => el("td", { class: columns[number][1] }, cell))));
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, el("table", more, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
  }

  // --- charts ---

  const probe = el("span", { hidden: true });
  function colour(name) {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  }

  function config() {
    const [text, quiet, line, page] = ["text", "quiet", "line", "page"].map(colour);
    const size = 0.78 * parseFloat(getComputedStyle(document.documentElement).fontSize);
    const font = getComputedStyle(document.body).fontFamily;
    const labels = { labelColor: text, titleColor: quiet, labelFontSize: size, titleFontSize: size, labelFont: font, titleFont: font };
    return {
      background: page,
      axis: { ...labels, labelLimit: 16 * size, titleFontWeight: "normal", gridColor: line, domainColor: quiet, tickColor: quiet },
      legend: { ...labels, symbolSize: 9 * size, columns: innerWidth < 640 ? 2 : 0 },
      range: { category: ["one", "two", "three", "four"].map(colour) },
      line: { strokeWidth: size / 6 },
      point: { size: 0.45 * size * size },
      rule: { color: text },
      view: { stroke: line },
    };
  }

  const tip = document.getElementById("tip");
  function showTip(handler, event, item, value) {
    tip.hidden = value === null || value === undefined || value === "";
    if (tip.hidden) return;
    tip.textContent = typeof value === "object" ? Object.entries(value).map(([name, text]) => `${name}: ${text}`).join("\n") : String(value);
    tip.style.left = `${Math.max(0, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }

  async function draw(chart) {
    const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    const spec = { ...chart.spec };
    spec.height = Math.round(spec.height * scale);
    if (chart.view) chart.view.finalize();
    chart.view = await window.vegaEmbed(chart.place, spec, { ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip: showTip, config: config() });
  }

  function median(values) {
    const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
    const half = sorted.length >> 1;
    return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }

  function filled(template, values) {
    const spec = structuredClone(template);
    spec.data.values = values;
    for (const channel of ["color", "shape"]) {
      const { scale } = spec.layer[0].encoding[channel];
      scale.domain = scale.domain.filter((what) => values.some((value) => value.what === what));
    }
    return spec;
  }

  function figureOf(title, text, spec, columns) {
    const place = el("div", { class: "chart" });
    const rows = () => spec.data.values.map((value) => columns.map(([field]) => (typeof value[field] === "number" ? figure(value[field]) : String(value[field] ?? ABSENT))));
    const more = el("details", { class: "small", open: !window.vegaEmbed }, el("summary", {}, "The same as a table"));
    const fill = () => more.open && more.childElementCount === 1 && more.append(table(title, columns.map(([, name], number) => [name, number ? "number" : "text"]), rows()));
    more.addEventListener("toggle", fill);
    fill();
    if (window.vegaEmbed) charts.push({ place, spec, view: null });
    return el("figure", {}, el("figcaption", {}, el("strong", {}, title), text ? el("div", { class: "quiet small" }, text) : null), place, columns.length ? more : null);
  }

  async function drawAll() {
    tip.hidden = true;
    for (const chart of charts) if (chart.place.isConnected) await draw(chart);
    document.documentElement.dataset.drawn = String(viewed);
  }

  // --- overview ---

  function headline() {
    const cards = run.headline.map((row) => el("section", { class: "card" },
      el("h3", {}, row.title),
      el("p", { class: "quiet small" }, `${row.problems} problem${row.problems === 1 ? "" : "s"}${row.note ? `, ${row.note}` : ""}`),
      el("dl", {}, row.figures.map(([name, value, interval]) => [el("dt", {}, name), el("dd", { class: "figure" }, value), el("dd", { class: "interval quiet small" }, interval)]))));
    return el("div", { class: "cards" }, cards);
  }

  function heatMap() {
    const sources = [...new Set(run.problems.map((problem) => problem.source))];
    const names = new Map();
    for (const problem of run.problems) for (const outcome of problem.outcomes) names.set(outcome, (names.get(outcome) || 0) + 1);
    const keys = [...names].sort((a, b) => rank(group(a[0])) - rank(group(b[0])));
    const legend = el("ul", { class: "legend", "aria-label": "Outcomes; each filters the table" },
      keys.map(([name, count]) => el("li", {}, el("button", { type: "button", onclick: () => { asked.outcome = name; go("#/problems"); } }, badge(name), ` ${count}`))));
    const tiles = (source) => run.problems.filter((problem) => problem.source === source).map((problem) => {
      const words = `${problem.id}: ${outcomeWords(problem.outcomes)}`;
      return el("li", {}, el("a", { href: problemHash(problem.id), title: words, "aria-label": words }, stripes(problem.outcomes)));
    });
    return el("section", { "aria-labelledby": "map" }, el("h2", { id: "map" }, "Problems by outcome"),
      el("p", { class: "quiet small" }, "A tile is a problem, a stripe of it a sample; a tile leads to its page."), legend,
      sources.map((source) => [el("h3", {}, source), el("ul", { class: "map", "aria-label": `${source}: problems by outcome` }, tiles(source))]));
  }

  function title() {
    return [el("h1", {}, run.run.model || "A run"), el("p", { class: "quiet" }, `run ${run.run.id}`), el("p", { class: "quiet small" }, run.problem_set)];
  }

  function overview() {
    const shown = run.charts.map((chart) => figureOf(chart.title, chart.text, chart.spec, chart.columns));
    return [title(), run.notes.map((note) => el("p", { class: "small" }, note)),
      run.problems.length ? null : el("p", {}, "No problem was selected, or the run ended before they were known."), headline(),
      el("p", { class: "quiet small" }, "In brackets: 95 % intervals over problems and samples, by bootstrap. fast_1: correct and, by the lower end of the clock's interval, faster than the library. Over all: what is not correct counts as 1/1000."),
      el("section", { "aria-labelledby": "charts" }, el("h2", { id: "charts" }, "Speed"),
        shown.length ? el("div", { class: "charts" }, shown) : el("p", {}, "Nothing was timed on this device in a way that means anything.")),
      heatMap(), problems(), runFacts()];
  }

  function runFacts() {
    return el("section", { "aria-labelledby": "facts" }, el("h2", { id: "facts" }, "The run"), facts(run.facts),
      el("h3", {}, "What the report says"), run.lines.map((line) => el("p", { class: "small" }, line)));
  }

  // --- the table of problems ---

  const COLUMNS = [
    ["problem", "name", (p) => p.id],
    ["correct", "number", (p) => p.correct / Math.max(1, p.outcomes.length)],
    ["outcomes", "text", (p) => outcomeWords(p.outcomes)],
    ["best speedup", "number breaks", (p) => (p.best ? p.best[0] : null)],
    ["median", "number narrow-hide", (p) => p.median],
    ["spread", "number narrow-hide", (p) => p.spread],
    ["roofline", "number narrow-hide", (p) => p.roofline],
    ["kind", "text narrow-hide", (p) => p.kind],
    ["category", "text narrow-hide", (p) => p.category],
    ["library", "text narrow-hide", (p) => p.against],
  ];

  function problemRow(problem) {
    const cells = [
      el("a", { href: problemHash(problem.id) }, problem.id),
      `${problem.correct} of ${problem.outcomes.length}`,
      [problem.outcomes.length > 1 ? el("span", { class: "small" }, outcomeWords(problem.outcomes)) : badge(problem.outcomes[0]), problem.outcomes.length > 1 ? el("div", { class: "bar", "aria-hidden": "true" }, stripes(problem.outcomes)) : null, problem.helped ? el("div", { class: "bad small" }, "others did the work") : null],
      estimate(problem.best),
      problem.median === null ? ABSENT : `${ratio(problem.median)}x`,
      problem.spread === null ? ABSENT : `${ratio(problem.spread)}x`,
      percent(problem.roofline),
      problem.kind,
      problem.category,
      problem.against || ABSENT,
    ];
    return el("tr", {}, cells.map((cell, number) => el("td", { class: COLUMNS[number][1] }, cell)));
  }

  function chosen() {
    const words = asked.text.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (p) => (!asked.source || p.source === asked.source) && (!asked.kind || p.kind === asked.kind)
      && (!asked.outcome || p.outcomes.includes(asked.outcome))
      && words.every((word) => `${p.id} ${p.category} ${p.kind} ${p.against}`.toLowerCase().includes(word));
    const found = run.problems.filter(fits);
    const column = COLUMNS.find(([name]) => name === asked.sort);
    if (!column) return found;
    const order = (a, b) => (typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en"));
    return found.map((p, number) => [column[2](p), number, p]).sort(([a, m], [b, n]) => {
      if (a === null || b === null) return (a === null) - (b === null) || m - n; // what is absent comes last both ways
      return (asked.down ? order(b, a) : order(a, b)) || m - n;
    }).map(([, , p]) => p);
  }

  function problems() {
    const body = el("tbody");
    const count = el("p", { class: "quiet small", role: "status" });
    const heads = COLUMNS.map(([name, kind]) => el("th", { scope: "col", class: kind }, el("button", { type: "button", onclick: () => sortBy(name, kind) }, name)));
    function fill() {
      const found = chosen();
      body.replaceChildren(...found.map(problemRow));
      count.textContent = `${found.length} of ${run.problems.length} problems`;
      heads.forEach((head, number) => {
        if (COLUMNS[number][0] === asked.sort) head.setAttribute("aria-sort", asked.down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
    }
    function sortBy(name, kind) {
      asked.down = asked.sort === name ? !asked.down : kind.startsWith("number");
      asked.sort = name;
      fill();
    }
    const choice = (label, key, values) => el("label", {}, label, el("select", { id: `filter-${key}`, onchange: (event) => { asked[key] = event.target.value; fill(); } },
      el("option", { value: "" }, "all"), [...new Set(values)].sort().map((value) => el("option", { value, selected: asked[key] === value }, value))));
    const text = el("input", { id: "filter-text", type: "search", value: asked.text, oninput: (event) => { asked.text = event.target.value; fill(); } });
    const section = el("section", { "aria-labelledby": "problems" }, el("h2", { id: "problems" }, "All problems"),
      el("div", { class: "filters" }, el("label", {}, "name, category or library ( / )", text),
        choice("source", "source", run.problems.map((p) => p.source)), choice("kind", "kind", run.problems.map((p) => p.kind)),
        choice("outcome", "outcome", run.problems.flatMap((p) => p.outcomes))), count,
      el("div", { class: "scroll" }, el("table", { class: "wide", "aria-labelledby": "problems" }, el("thead", {}, el("tr", {}, heads)), body)));
    fill();
    return section;
  }

  // --- one problem ---

  const MOST_COLOURED = 200000; // characters; no kernel is longer
  const WORDS = new Map(Object.entries({
    k: "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield",
    b: "abs all any bool bytes callable dict dir divmod enumerate filter float format frozenset getattr hasattr hash hex id int isinstance issubclass iter len list map max min next object open ord pow print property range repr reversed round self set setattr slice sorted staticmethod str sum super tuple type vars zip",
  }).flatMap(([letter, words]) => words.split(" ").map((word) => [word, letter])));
  // Python's comments, strings, decorators, words and numbers. Every part reads on without going back, to its own end or
  // that of the text, so that no text, whatever it means, takes longer than its length.
  const TOKEN = new RegExp([
    /(?<c>#.*)/,
    /(?<s>[bfrtu]{0,2}(?:"""(?:\\[^]?|"(?!"")|[^"\\])*(?:"""|(?![^]))|'''(?:\\[^]?|'(?!'')|[^'\\])*(?:'''|(?![^]))|"(?:\\[^]?|[^"\\\n])*"?|'(?:\\[^]?|[^'\\\n])*'?))/,
    /(?<d>^[ \t]*@[\w.]+)/, /(?<w>[\p{L}_][\p{L}\p{N}_]*)/, /(?<m>\d(?:e[+-]\d|[\w.])*)/,
  ].map((part) => part.source).join("|"), "gimu");

  function* coloured(text) {
    let [at, before] = [0, ""];
    for (const { 0: token, index, groups } of text.length > MOST_COLOURED ? [] : text.matchAll(TOKEN)) {
      const word = before === "def" || before === "class" ? "f" : text[index - 1] === "." ? "" : WORDS.get(token);
      const letter = groups.w ? word : Object.keys(groups).find((name) => groups[name]);
      before = token;
      if (!letter) continue;
      yield text.slice(at, index);
      yield el("span", { class: `t-${letter}` }, token);
      at = index + token.length;
    }
    yield text.slice(at);
  }

  function codeView(text) {
    const code = el("code");
    for (const part of coloured(text)) code.append(part);
    const lines = text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
    const gutter = Array.from({ length: lines }, (_, number) => number + 1).join("\n");
    return el("div", { class: "code", tabindex: "0", role: "region", "aria-label": "Code" }, el("pre", { class: "gutter", "aria-hidden": "true" }, gutter), el("pre", {}, code));
  }

  function promptView(turns, detail, title) {
    return el("details", {}, el("summary", {}, title),
      turns.map(([role, number]) => [el("h3", {}, role), el("pre", { class: "wrap long", tabindex: "0" }, role === "system" ? run.systems[number] : detail.texts[number])]));
  }

  function speedView(sample) {
    const timed = sample.timed;
    if (!timed.length) return null;
    const times = timed.flatMap((each) => ["candidate", "library", "roofline"].map((what) => ({ case: each.case.replace("bench-", ""), what, us: each[`${what}_us`] })).filter((each) => each.us !== null));
    const rows = timed.map((each) => [
      el("span", { title: each.what }, each.case.replace("bench-", "")), figure(each.library_us), figure(each.candidate_us), each.ratio ? estimate(each.ratio) : ABSENT,
      figure(each.roofline_us), percent(each.share), figure(each.gb_per_s), figure(each.gflop_per_s), [...(each.against === "fallback" ? ["against the fallback"] : []), ...each.notes].join("; ")]);
    const heads = [["case", "word"], ["library µs", "number"], ["candidate µs", "number"], ["speedup", "number"], ["roofline µs", "number"], ["of roofline", "number"], ["GB/s", "number"], ["GFLOP/s", "number"], ["", "text"]];
    const chart = window.vegaEmbed ? figureOf("Time per call", times.some((each) => each.what === "roofline") ? "roofline: what the device's measured peaks allow at best" : "", { ...filled(run.templates.cases.spec, times), height: timed.length * run.templates.cases.row_height }, []) : null;
    return el("section", {}, el("h2", {}, "Speed per case"), table("Every bench case", heads, rows), chart, samplesView(timed));
  }

  function samplesView(timed) {
    const withSamples = timed.filter((each) => each.samples.library.length + each.samples.candidate.length);
    if (!withSamples.length) return null;
    const place = el("div");
    const values = (each) => ["library", "candidate"].flatMap((what) => each.samples[what].map((us, number) => ({ window: number + 1, what, us, off: us / median(each.samples[what]) - 1 }))).filter((each) => each.us !== null);
    const show = (number) => {
      charts = charts.filter((chart) => !place.contains(chart.place));
      const one = { ...filled(run.templates.samples.spec, values(withSamples[number])), description: `Timing samples of ${withSamples[number].case}` };
      place.replaceChildren(figureOf("Timing samples", "A point is a window of calls of one side, in their order: how far it is off that side's median.", one, [["what", "side"], ["window", "window"], ["us", "µs per call"]]));
    };
    const select = el("select", { onchange: (event) => { show(Number(event.target.value)); drawAll(); } }, withSamples.map((each, number) => el("option", { value: number }, each.case)));
    show(0);
    return el("section", {}, el("h2", {}, "Timing samples"), el("label", {}, "bench case ", select), place);
  }

  function sampleView(sample, detail) {
    const text = (number) => detail.texts[number];
    const why = sample.why.map((number) => el("p", {}, text(number)));
    const seen = sample.evidence.map(([allowed, number]) => el("li", {}, allowed ? "seen: " : el("span", { class: "bad" }, "not allowed: "), text(number)));
    const cases = sample.cases.map(([name, phase, what, outcome, seconds, reason]) => [name, badge(outcome), seconds.toFixed(3), [text(what), reason === null ? null : el("div", { class: "bad" }, text(reason))]]);
    const wrong = sample.cases.filter((each) => group(each[3]) !== "right").length;
    return [
      el("p", {}, badge(sample.outcome), sample.speedup ? ` ${sample.speedup}` : "", sample.counts ? "" : el("span", { class: "quiet" }, " (another round of this sample counts)")),
      why.length ? el("section", {}, el("h2", {}, "What is wrong"), why) : null,
      sample.mismatch ? table("The first wrong element", [["", "text"], ["", "text"]], sample.mismatch) : null,
      sample.log === null ? null : el("section", {}, el("h2", {}, "Log, its end"), el("pre", { class: "wrap long", tabindex: "0" }, text(sample.log))),
      speedView(sample),
      sample.code === null ? null : el("section", {}, el("h2", {}, "Code"), codeView(text(sample.code))),
      seen.length ? el("section", {}, el("h2", {}, `What it was seen to do (${sample.policy || "no"} policy)`), el("ul", { class: "text" }, seen)) : null,
      cases.length ? el("section", {}, el("h2", {}, "Cases"), el("details", {}, el("summary", {}, `${cases.length} cases, ${wrong} not correct`), table("Every case", [["case", "word"], ["outcome", "text"], ["s", "number"], ["what", "text"]], cases, { class: "wide" }))) : null,
      el("section", {}, el("h2", {}, "How it was judged"), facts(sample.facts.map(([name, number]) => [name, text(number)])), sample.again ? [el("h3", {}, "Again"), el("pre", { class: "wrap" }, sample.again)] : null),
      sample.prompt ? el("section", {}, el("h2", {}, "Prompt"), promptView(sample.prompt, detail, "what was asked")) : null,
    ];
  }

  async function problemPage(id, which) {
    const number = run.problems.findIndex((problem) => problem.id === id);
    if (number < 0) return [el("h1", {}, "No such problem"), el("p", {}, `${id} is not in this run.`), el("a", { href: "#/problems" }, "All problems")];
    const problem = run.problems[number];
    const detail = await unpack(await packedText(`problem-${number}`));
    const name = (sample) => `${sample.sample}.${sample.round}`;
    const sample = detail.samples.find((each) => name(each) === which) || detail.samples.find((each) => each.counts && group(each.outcome) === "right") || detail.samples[0];
    const rounds = detail.samples.some((each) => each.round);
    const list = detail.samples.map((each) => el("li", {}, el("a", { href: problemHash(id, name(each)), "aria-current": each === sample ? "page" : null }, `#${each.sample}${rounds ? ` round ${each.round}` : ""} `, badge(each.outcome))));
    const beside = (at, words) => (run.problems[at] ? el("a", { href: problemHash(run.problems[at].id) }, words(run.problems[at].id)) : el("span"));
    return [
      el("div", { class: "pager" }, beside(number - 1, (other) => `← ${other}`), beside(number + 1, (other) => `${other} →`)),
      el("h1", {}, id), el("p", { class: "quiet" }, [problem.kind, problem.category].filter(Boolean).join(", ")), el("p", {}, detail.summary),
      detail.changed ? el("p", { class: "bad" }, "The problem's file has changed since; these verdicts are of the version before.") : null,
      list.length > 1 ? el("nav", { "aria-label": "Samples" }, el("ul", { class: "samples" }, list)) : null,
      sample ? sampleView(sample, detail) : el("p", {}, "Not evaluated: the run ended before this problem."),
      detail.prompt ? el("section", {}, el("h2", {}, "Prompt"), el("p", { class: "quiet small" }, `${detail.asked ? "What was asked is not in the run's folder." : "No model was asked in this run."} \`kgbench prompt\` gives:`), promptView(detail.prompt, detail, "the prompt")) : null,
    ];
  }

  // --- which view ---

  function go(hash) {
    if (location.hash === hash) view();
    else location.hash = hash;
  }

  async function view() {
    const mine = ++viewed;
    const [where, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
    for (const chart of charts) if (chart.view) chart.view.finalize();
    charts = [];
    let content;
    try {
      if (where === "problem") content = await problemPage(rest.slice(0, 2).join("/"), rest[2]);
      else if (where === "problems") content = [title(), problems()];
      else if (where === "run") content = [title(), runFacts()];
      else content = overview();
    } catch (error) {
      content = [el("h1", {}, "This part of the page cannot be read"), el("p", {}, String(error))];
    }
    if (mine !== viewed) return;
    main.replaceChildren(...content.flat(9).filter(Boolean));
    for (const link of document.querySelectorAll("header nav a")) {
      if (link.getAttribute("href").replace("#/", "") === (where || "")) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    scrollTo(0, 0);
    if (mine > 1) main.focus({ preventScroll: true });
    await drawAll();
  }

  const theme = document.getElementById("theme");
  theme.addEventListener("change", () => {
    document.documentElement.dataset.theme = theme.value;
    drawAll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  document.getElementById("skip").addEventListener("click", () => main.focus());
  addEventListener("hashchange", view);
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
  addEventListener("keydown", (event) => {
    const field = document.getElementById("filter-text");
    if (event.key !== "/" || !field || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    field.focus();
  });

  document.body.append(probe);
  unpack(document.getElementById("index").textContent).then((data) => { run = data; return view(); }).catch((error) => {
    main.replaceChildren(el("p", {}, `This page cannot be read: ${error}`));
  });
})();
