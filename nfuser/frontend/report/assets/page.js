"use strict";
// Draws a report from the JSON beside it. A selection is a line or a piece; all that
// belongs to it is marked, wherever it stands.
(() => {
  const shown = JSON.parse(document.getElementById("shown").textContent);
  const MOST_NODES = 120; // more operations than this are folded into their kernels
  const COLOURS = ["#2f6fd0", "#b4532a", "#2f8f5b", "#8a4fc0", "#a67c00", "#c23b6e", "#00838f", "#6b7280"];
  const colour = piece => COLOURS[piece % COLOURS.length];
  const count = n => n.toLocaleString("en");
  const counted = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
  const nodes = new Map(shown.graph.nodes.map(n => [n.key, n]));

  const make = (tag, attributes = {}, ...children) => {
    const space = ["svg", "g", "rect", "path", "text", "title", "defs", "marker"].includes(tag);
    const it = space ? document.createElementNS("http://www.w3.org/2000/svg", tag)
                     : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) it.setAttribute(name, value);
    it.append(...children);
    return it;
  };
  const into = id => document.querySelector(`#${id} > div`);

  // -- what belongs together: lines to pieces, and back
  const piecesOf = new Map(); // of a line
  const linesOf = shown.pieces.map(() => new Set());
  const join = (place, piece) => {
    if (!place || piece === null) return;
    if (!piecesOf.has(place)) piecesOf.set(place, new Set());
    piecesOf.get(place).add(piece);
    linesOf[piece].add(place);
  };
  for (const node of nodes.values()) join(node.place, node.piece);
  shown.pieces.forEach((p, k) => p.operations.forEach(o => join(o.place, k)));

  let chosen = {};
  const choose = selection => {
    const same = chosen.line === selection.line && chosen.piece === selection.piece;
    chosen = same ? {} : selection;
    const { line, piece } = chosen;
    const hasLine = place => line !== undefined ? place === line
      : piece !== undefined && linesOf[piece].has(place);
    const hasPiece = k => piece !== undefined ? k === piece
      : line !== undefined && (piecesOf.get(line)?.has(k) ?? false);
    for (const it of document.querySelectorAll("[data-line]"))
      it.classList.toggle("marked", hasLine(it.dataset.line) &&
        (piece === undefined || it.dataset.of === undefined || Number(it.dataset.of) === piece));
    for (const it of document.querySelectorAll("[data-piece]"))
      it.classList.toggle("marked", hasPiece(Number(it.dataset.piece)));
  };
  const onClick = (it, act) => it.addEventListener("click", event => { event.stopPropagation(); act(); });

  const chip = k => {
    const it = make("span", { class: "chip", style: `background:${colour(k)}`, title: shown.pieces[k].name }, String(k));
    onClick(it, () => choose({ piece: k }));
    return it;
  };

  // -- the head
  const head = () => {
    document.querySelector("h1").textContent = shown.name;
    document.getElementById("arguments").textContent =
      `${shown.arguments.join(", ")} on ${shown.where}, nfuser ${shown.version}`;
    const tile = (title, ...told) =>
      document.getElementById("tiles").append(make("div", { class: "tile" }, make("b", {}, title), ...told));
    tile(counted(shown.kernels, "kernel"), `of ${counted(shown.operations, "operation")}`);
    const share = shown.unfused ? shown.fused / shown.unfused : 1;
    tile(shown.fused ? `${(1 / share).toFixed(1)} times fewer bytes` : "no bytes",
      make("div", { class: "bar whole" }), `${count(shown.unfused)} one by one`,
      make("div", { class: "bar", style: `width:${Math.min(100, 100 * share)}%` }), `${count(shown.fused)} fused`);
    const counts = shown.cache.counts;
    tile(counted(counts.traces, "trace"),
      `${counts.compiled} compiled, ${counts.reused + counts.loaded} found, ${count(counts.calls)} calls`);
    const calls = shown.summary.find(line => line.startsWith("calls"));
    if (calls) tile("Calls", calls.slice(5).trim());
  };

  // -- the user's lines
  const code = () => {
    for (const section of shown.sections) {
      const lines = make("pre");
      for (const line of section.lines) {
        const row = make("span", { class: "row" },
          make("span", { class: "number" }, line.place.split(":").pop()), make("span", {}, line.text || " "));
        const pieces = [...(piecesOf.get(line.place) ?? [])];
        if (pieces.length) {
          row.classList.add("busy");
          row.dataset.line = line.place;
          row.append(make("span", { class: "chips" }, ...pieces.sort((a, b) => a - b).slice(0, 12).map(chip)));
          onClick(row, () => choose({ line: line.place }));
        }
        lines.append(row);
      }
      into("code").append(make("small", {}, section.title), lines);
    }
  };

  // -- the graph
  const opened = new Set();
  const sizes = shown.pieces.map((_, k) => shown.graph.nodes.filter(n => n.piece === k).length);
  if (nodes.size <= MOST_NODES) sizes.forEach((_, k) => opened.add(k));
  const isFolded = piece => piece !== null && !opened.has(piece);
  const standIn = node => isFolded(node.piece) ? `p${node.piece}` : node.key;

  const draw = () => {
    const graph = new dagre.graphlib.Graph({ compound: true });
    graph.setGraph({ rankdir: "TB", nodesep: 14, ranksep: 26, marginx: 8, marginy: 8 });
    graph.setDefaultEdgeLabel(() => ({}));
    const width = (...texts) => Math.max(...texts.map(t => t.length)) * 7.4 + 16;
    shown.pieces.forEach((piece, k) => {
      if (isFolded(k)) graph.setNode(`p${k}`, { piece: k, label: piece.name, detail: counted(sizes[k], "operation"),
        width: width(piece.name), height: 40 });
      else graph.setNode(`b${k}`, { piece: k });
    });
    for (const node of nodes.values()) {
      if (isFolded(node.piece)) continue;
      graph.setNode(node.key, { ...node, width: width(node.label, node.detail), height: 36 });
      if (node.piece !== null) graph.setParent(node.key, `b${node.piece}`);
    }
    for (const edge of shown.graph.edges) {
      const [a, b] = [standIn(nodes.get(edge.start)), standIn(nodes.get(edge.end))];
      if (a !== b) graph.setEdge(a, b);
    }
    for (const k of shown.pieces.keys())
      if (!isFolded(k) && graph.children(`b${k}`).length === 0) graph.removeNode(`b${k}`);
    dagre.layout(graph);
    document.getElementById("drawing").replaceChildren(picture(graph));
    const again = chosen;
    chosen = {};
    choose(again);
  };

  const picture = graph => {
    const { width, height } = graph.graph();
    const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "graph of the fusion" },
      make("defs", {}, make("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
        make("path", { d: "M0 0L8 4L0 8" }))));
    const all = graph.nodes().map(key => [key, graph.node(key)]);
    for (const [key, at] of all.filter(([key]) => key[0] === "b")) svg.append(box(at));
    for (const edge of graph.edges()) {
      const points = graph.edge(edge).points.map(p => `${p.x.toFixed(1)} ${p.y.toFixed(1)}`);
      svg.append(make("path", { d: `M${points.join("L")}`, "marker-end": "url(#tip)" }));
    }
    for (const [key, at] of all.filter(([key]) => key[0] !== "b")) svg.append(element(key, at));
    return svg;
  };
  const rectangle = (at, more) => make("rect",
    { x: at.x - at.width / 2, y: at.y - at.height / 2, width: at.width, height: at.height, rx: 5, ...more });
  const box = at => {
    const it = make("g", { class: "box", "data-piece": at.piece },
      rectangle(at, { fill: colour(at.piece), stroke: colour(at.piece) }),
      make("title", {}, shown.pieces[at.piece].name));
    onClick(it, () => choose({ piece: at.piece }));
    return it;
  };
  const element = (key, at) => {
    const folded = key[0] === "p";
    const it = make("g", { class: at.piece === null ? "node given" : folded ? "box" : "node" },
      rectangle(at, folded ? { fill: colour(at.piece), stroke: colour(at.piece) } : {}),
      make("text", { x: at.x, y: at.y - 3, "text-anchor": "middle" }, at.label),
      make("text", { x: at.x, y: at.y + 11, "text-anchor": "middle", class: "small" }, at.detail));
    if (folded) {
      it.dataset.piece = at.piece;
      onClick(it, () => {
        if (chosen.piece === at.piece) { opened.add(at.piece); draw(); } else choose({ piece: at.piece });
      });
    } else if (at.place) {
      it.dataset.line = at.place;
      it.dataset.of = at.piece;
      onClick(it, () => choose({ line: at.place }));
    }
    return it;
  };

  // -- kernels
  const source = (piece, k) => {
    const pre = make("pre", { class: "long" });
    const texts = piece.source.split("\n");
    for (const text of texts) {
      const row = make("span", { class: "row" }, text || " ");
      const isComment = text.startsWith("#");
      const names = isComment ? text.match(/^#   (T\d+)/)?.slice(1) : text.match(/\bt\d+(?=_\d+\b|\b)/g);
      const place = (names ?? []).map(n => piece.places[n.toLowerCase()]).find(Boolean);
      if (place) { row.dataset.line = place; row.dataset.of = k; row.classList.add("busy"); onClick(row, () => choose({ line: place })); }
      pre.append(row);
    }
    return pre;
  };
  const folded = (title, fill) => {
    const it = make("details", {}, make("summary", {}, title));
    it.addEventListener("toggle", () => { if (it.open && it.children.length === 1) it.append(fill()); choose2(); });
    return it;
  };
  const choose2 = () => { const again = chosen; chosen = {}; choose(again); };
  const plain = text => make("pre", { class: "long" }, text);

  const kernels = () => {
    const most = Math.max(1, ...shown.pieces.map(p => p.reads + p.writes));
    shown.pieces.forEach((piece, k) => {
      const moved = piece.reads + piece.writes;
      const top = make("header", {}, chip(k), make("h3", {}, piece.name),
        make("small", {}, piece.schedule + (piece.is_launched ? "" : ", not launched: there is nothing to store")));
      onClick(top, () => choose({ piece: k }));
      const it = make("div", { class: "piece", "data-piece": k, style: `border-left-color:${colour(k)}` }, top,
        make("div", { class: "bar", style: `width:${(100 * moved) / most}%` }),
        make("small", {}, `${count(piece.reads)} bytes read, ${count(piece.writes)} written; ` +
          `${[...new Set(piece.operations.map(o => o.name))].join(", ")}`));
      if (piece.source) {
        const opened = folded("source", () => source(piece, k));
        if (shown.pieces.length <= 2) opened.open = true;
        it.append(opened, folded("schedule", () => plain(piece.loops)), folded("kernel, before it is printed", () => plain(piece.kernel)));
      }
      into("pieces").append(it);
    });
  };

  // -- the host program: who runs after whom, and what lies in memory meanwhile
  const host = () => {
    const room = into("host");
    const moved = shown.pieces.map(p => p.reads + p.writes);
    const least = Math.max(1, ...moved) / 40; // so that each can be clicked
    const widths = moved.map(n => Math.max(n, least));
    const whole = Math.max(1, widths.reduce((a, b) => a + b, 0));
    const at = k => (100 * widths.slice(0, k).reduce((a, b) => a + b, 0)) / whole;
    const span = (first, last, attributes, ...told) => make("div", { ...attributes,
      style: `left:${at(first)}%;width:${at(last + 1) - at(first)}%;${attributes.style ?? ""}` }, ...told);
    const runs = make("div", { class: "track" });
    shown.pieces.forEach((piece, k) => {
      const run = span(k, k, { class: "run", "data-piece": k, style: `background:${colour(k)}`,
        title: `${piece.name}: ${count(moved[k])} bytes` }, String(k));
      onClick(run, () => choose({ piece: k }));
      runs.append(run);
    });
    room.append(runs);
    for (const s of shown.stored.slice(0, 60))
      room.append(make("div", { class: "track" }, span(s.first, s.last, { class: "held", title: s.tensor },
        `${s.tensor}: ${count(s.bytes)} bytes`)));
    if (shown.stored.length > 60) room.append(make("p", {}, `and ${shown.stored.length - 60} more`));
  };

  const memory = () => {
    const room = into("memory");
    for (const cut of shown.cuts) {
      const told = make("div", {}, make("p", {}, ...cut.pieces.slice(0, 12).flatMap(k => [chip(k), " "]), cut.text));
      told.append(...cut.reasons.map(reason => make("small", {}, reason, make("br"))));
      room.append(told);
    }
    for (const note of shown.notes) room.append(make("p", {}, note));
    if (!room.children.length) room.append(make("p", {}, "One piece does all: nothing lies in memory between kernels."));
  };

  // -- passes and caches
  const stages = () => {
    shown.stages.forEach((stage, k) => {
      const before = new Set(k ? shown.stages[k - 1].text.split("\n").map(bare) : []);
      into("stages").append(folded(stage.name, () => {
        const pre = make("pre", { class: "long" });
        for (const text of stage.text.split("\n"))
          pre.append(k && !before.has(bare(text)) ? make("ins", {}, text || " ") : `${text}\n`);
        return pre;
      }));
    });
  };
  const bare = text => text.replace(/\bT\d+\b/g, "T"); // names are given anew after each pass
  const cache = () => {
    const counts = Object.entries(shown.cache.counts).map(([name, n]) => `${name} ${count(n)}`);
    into("cache").append(make("p", {}, shown.cache.why), make("p", { class: "hint" }, counts.join(", ")));
    if (shown.cache.table.includes("\n")) into("cache").append(plain(shown.cache.table)); // calls have left rows
  };

  head(); code(); draw(); kernels(); host(); memory(); stages(); cache();
})();
