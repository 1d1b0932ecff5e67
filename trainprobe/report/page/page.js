"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const say = (text) => { one("#spoken").textContent = text; };
  const data = (id) => {
    const island = document.getElementById(id);
    return island ? JSON.parse(island.textContent) : null;
  };

  // The theme: the system's until somebody chooses.
  const themes = ["system", "light", "dark"];
  let theme = "system";
  try { theme = localStorage.getItem("trainprobe-theme") || theme; } catch { /* a strict browser */ }
  const paint = () => {
    if (theme === "system") delete root.dataset.theme; else root.dataset.theme = theme;
    const button = one("#theme");
    button.textContent = `Theme: ${theme}`;
    button.setAttribute("aria-label", `Theme: ${theme}. Change it.`);
  };
  if (!themes.includes(theme)) theme = "system";
  paint();
  one("#theme").addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("trainprobe-theme", theme); } catch { /* as above */ }
    paint();
  });

  // Copy.
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { /* not allowed from a file in some browsers */ }
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "spoken";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  for (const button of all("[data-copy]")) {
    button.addEventListener("click", async () => {
      const done = await copy(one("pre", button.parentElement).textContent);
      button.textContent = done ? "Copied" : "Select it by hand";
      say(done ? "Copied" : "It could not be copied");
      setTimeout(() => { button.textContent = "Copy"; }, 1600);
    });
  }

  // The grid: one stop for the tab key, arrows inside.
  const grid = one("#grid");
  if (grid) {
    const told = one("#told");
    const cells = [...grid.getElementsByTagName("i")];
    let known = null;
    let at = -1;
    const describe = (place) => {
      known ??= data("rank-data");
      const [state, where, waits, source] = known.places[known.place[place]];
      let host = 0;
      for (let count = known.each[0]; count <= place; count += known.each[host]) host += 1;
      const rank = known.rank[place];
      const parts = [rank === null ? "A process without a known rank" : `Rank ${rank}`];
      if (known.hosts[host]) parts.push(` on ${known.hosts[host]}`);
      if (known.pid[place]) parts.push(`, pid ${known.pid[place]}`);
      parts.push(`: ${state}`);
      if (known.since[place] !== null) parts.push(` for ${known.since[place]} s`);
      if (where) parts.push(` at ${where}`);
      if (source) parts.push(`: ${source}`);
      if (waits) parts.push(`; waits for ${waits}`);
      return `${parts.join("")}.`;
    };
    const show = (place) => { told.textContent = describe(place); };
    const goTo = (place) => {
      if (at >= 0) cells[at].tabIndex = -1;
      at = place;
      cells[at].tabIndex = 0;
      cells[at].setAttribute("aria-label", describe(at));
    };
    const culprit = Math.max(0, cells.findIndex((cell) => cell.classList.contains("q")));
    if (cells.length) goTo(culprit);
    grid.addEventListener("mouseover", (event) => {
      if (event.target.tagName === "I") show(cells.indexOf(event.target));
    });
    grid.addEventListener("focusin", (event) => {
      if (event.target.tagName === "I") { goTo(cells.indexOf(event.target)); show(at); }
    });
    grid.addEventListener("click", (event) => {
      if (event.target.tagName === "I") { goTo(cells.indexOf(event.target)); cells[at].focus(); }
    });
    const vertical = (step) => {
      const from = cells[at].getBoundingClientRect();
      let best = -1;
      let least = Infinity;
      for (let place = at + step; place >= 0 && place < cells.length; place += step) {
        const box = cells[place].getBoundingClientRect();
        const rows = (box.top - from.top) * step;
        if (rows < 3) continue;
        const far = rows * 4 + Math.abs(box.left - from.left);
        if (far < least) { least = far; best = place; }
        if (rows > 6 * from.height + 40) break;
      }
      return best;
    };
    grid.addEventListener("keydown", (event) => {
      const moves = {
        ArrowRight: () => at + 1,
        ArrowLeft: () => at - 1,
        ArrowDown: () => vertical(1),
        ArrowUp: () => vertical(-1),
        Home: () => 0,
        End: () => cells.length - 1,
      };
      const move = moves[event.key];
      if (!move) return;
      event.preventDefault();
      const next = move();
      if (next >= 0 && next < cells.length) { goTo(next); cells[at].focus(); }
    });
  }

  // Searching.
  const later = (act) => {
    let timer = 0;
    return () => { clearTimeout(timer); timer = setTimeout(act, 80); };
  };
  const inSet = (set, rank) => set.split(",").some((part) => {
    const [low, high = low] = part.split("-").map(Number);
    return rank >= low && rank <= high;
  });
  const tree = one("#stack-tree");
  if (tree) {
    const headOf = (item) => {
      const first = item.firstElementChild;
      return first.tagName === "DETAILS" ? first.firstElementChild : first;
    };
    const items = all("li", tree).map((item) => ({
      item,
      set: one(".set", item).textContent,
      frames: all(".frame", headOf(item)),
    }));

    // The same as an icicle: a frame is as wide as its share of the ranks, callees below.
    const icicle = one("#icicle");
    const told = one("#icicle-told");
    const cells = [];
    const size = (set) => set.split(",").reduce((sum, part) => {
      const [low, high = low] = part.split("-").map(Number);
      return sum + (Number.isNaN(low) ? 1 : high - low + 1);
    }, 0);
    const part = (kind, into) => {
      const made = document.createElement("div");
      made.className = kind;
      into.append(made);
      return made;
    };
    const children = (list) => [...list.children].filter((one) => one.tagName === "LI");
    const whole = children(tree).reduce((sum, item) => sum + size(one(".set", item).textContent), 0);
    const grow = (item, into, above) => {
      const { set, frames } = items.find((one) => one.item === item);
      const ranks = size(set);
      const branch = part(item.classList.contains("guilty") ? "branch guilty" : "branch", into);
      branch.style.flexGrow = ranks;
      let last = above;
      frames.forEach((frame, place) => {
        const box = part("frame", branch);
        const cell = { box, branch, frame, item, set, ranks, above: last, level: last ? last.level + 1 : 1 };
        if (place === 0) part("set", box).textContent = set;
        box.append(frame.textContent);
        box.tabIndex = -1;
        box.setAttribute("role", "treeitem");
        box.setAttribute("aria-level", cell.level);
        box.setAttribute("aria-selected", "false");
        const who = whole > 1 ? `Ranks ${set}, ${ranks} of ${whole}: ` : "";
        box.setAttribute("aria-label", who + frame.textContent);
        cells.push(cell);
        last = cell;
      });
      const list = item.firstElementChild.tagName === "DETAILS" && one("ul", item);
      if (!list) { last.box.classList.add("end"); return; }
      const row = part("row", branch);
      const inner = children(list);
      for (const child of inner) grow(child, row, last);
      const rest = ranks - inner.reduce((sum, child) => sum + size(one(".set", child).textContent), 0);
      if (rest > 0) part("branch none", row).style.flexGrow = rest;
    };
    const roots = part("row", icicle);
    for (const item of children(tree)) grow(item, roots, null);

    let at = null;
    const shown = (cell) => cell.box.offsetParent !== null;
    const enter = (cell, focus) => {
      if (at) { at.box.tabIndex = -1; at.box.setAttribute("aria-selected", "false"); }
      at = cell;
      at.box.tabIndex = 0;
      at.box.setAttribute("aria-selected", "true");
      if (focus) at.box.focus();
    };
    const tell = (cell) => { told.textContent = cell.box.getAttribute("aria-label"); };
    let narrowed = null;
    const narrow = (branch) => {
      narrowed = branch;
      for (const one of all(".branch", icicle)) {
        one.hidden = branch !== null && !(one.contains(branch) || branch.contains(one));
      }
      say(branch ? "Only these ranks are shown. Escape shows all." : "All ranks are shown.");
    };
    const cellOf = (target) => cells.find((cell) => cell.box === target.closest("[role=treeitem]"));
    enter(cells.find((cell) => cell.item.classList.contains("guilty")) || cells[0], false);
    told.textContent = "Arrows lead from frame to frame. Enter or a click leaves only the ranks of one; Escape shows all.";
    icicle.addEventListener("mouseover", (event) => {
      const cell = cellOf(event.target);
      if (cell) tell(cell);
    });
    icicle.addEventListener("focusin", (event) => {
      const cell = cellOf(event.target);
      if (cell) { enter(cell, false); tell(cell); }
    });
    icicle.addEventListener("click", (event) => {
      const cell = cellOf(event.target);
      if (cell) { enter(cell, true); narrow(narrowed === cell.branch ? null : cell.branch); }
    });
    const beside = (step) => {
      const row = cells.filter((cell) => cell.level === at.level && shown(cell));
      return row[row.indexOf(at) + step];
    };
    icicle.addEventListener("keydown", (event) => {
      const moves = {
        ArrowDown: () => cells.find((cell) => cell.above === at && shown(cell)),
        ArrowUp: () => at.above,
        ArrowLeft: () => beside(-1),
        ArrowRight: () => beside(1),
        Home: () => cells.find(shown),
        End: () => cells.filter(shown).at(-1),
      };
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        narrow(narrowed === at.branch ? null : at.branch);
      } else if (event.key === "Escape" && narrowed) {
        narrow(null);
      } else if (moves[event.key]) {
        event.preventDefault();
        const next = moves[event.key]();
        if (next) enter(next, true);
      }
    });

    const view = one("#stack-view");
    const look = (drawn) => {
      one("#stack-icicle").hidden = !drawn;
      tree.hidden = drawn;
      for (const button of all("[data-open], [data-close]", view.parentElement)) button.hidden = drawn;
      view.textContent = drawn ? "As a list" : "As an icicle";
    };
    view.addEventListener("click", () => look(tree.hidden === false));
    look(!matchMedia("(max-width: 640px)").matches);
    addEventListener("beforeprint", () => { tree.hidden = false; });
    addEventListener("afterprint", () => look(one("#stack-icicle").hidden === false));

    const stacks = one("#stack-search");
    stacks.addEventListener("input", later(() => {
      const words = stacks.value.trim().toLowerCase();
      const rank = /^\d+$/.test(words) ? Number(words) : null;
      let hits = 0;
      for (const { item, set, frames } of items) {
        let hit = rank !== null && inSet(set, rank);
        for (const frame of frames) {
          const found = words !== "" && rank === null && frame.textContent.toLowerCase().includes(words);
          frame.classList.toggle("hit", found);
          hit ||= found;
        }
        item.dataset.hit = hit ? "1" : "";
        hits += hit;
      }
      for (const { item } of items) {
        const keep = words === "" || item.dataset.hit || one('li[data-hit="1"]', item);
        item.classList.toggle("dim", !keep);
        if (words && keep && item.firstElementChild.tagName === "DETAILS") item.firstElementChild.open = true;
      }
      for (const { box, frame, item } of cells) {
        box.classList.toggle("hit", frame.classList.contains("hit") || (rank !== null && item.dataset.hit === "1"));
        box.classList.toggle("dim", item.classList.contains("dim"));
      }
      one("#stack-found").textContent = words ? `${hits} found` : "";
    }));
  }
  for (const button of all("[data-open], [data-close]")) {
    button.addEventListener("click", () => {
      const section = document.getElementById(button.dataset.open || button.dataset.close);
      for (const part of all(".tree details", section)) part.open = "open" in button.dataset;
    });
  }

  // Raw records open when they are asked for.
  const records = all(".record");
  if (records.length) {
    let raw = null;
    const fill = (record) => {
      if (one("pre", record)) return;
      raw ??= data("evidence-data");
      const pre = document.createElement("pre");
      pre.textContent = JSON.stringify(raw[record.dataset.record], null, 2)
        .replace(/\\n/g, "\n").replace(/\\"/g, '"');
      pre.tabIndex = 0;
      record.append(pre);
    };
    for (const record of records) {
      record.addEventListener("toggle", () => { if (record.open) fill(record); });
    }
    const search = one("#evidence-search");
    const texts = records.map((record) => record.textContent.toLowerCase());
    search.addEventListener("input", later(() => {
      const words = search.value.trim().toLowerCase();
      let found = 0;
      raw ??= data("evidence-data");
      records.forEach((record, place) => {
        const exact = /^e\d+$/.test(words);
        const hit = exact
          ? record.dataset.record.toLowerCase() === words
          : texts[place].includes(words)
            || JSON.stringify(raw[record.dataset.record]).toLowerCase().includes(words);
        record.hidden = !hit;
        found += hit;
      });
      one("#evidence-found").textContent = words ? `${found} found` : "";
    }));
    const reveal = () => {
      const target = location.hash.startsWith("#e-") && document.getElementById(location.hash.slice(1));
      if (!target) return;
      const record = target.closest(".record");
      record.hidden = false;
      record.open = true;
      record.scrollIntoView({ block: "center" });
      one("summary", record).focus({ preventScroll: true });
    };
    addEventListener("hashchange", reveal);
    reveal();
  }

  // Which section is being read.
  const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
  if (links.size && "IntersectionObserver" in window) {
    const seen = new Set();
    const watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) seen[entry.isIntersecting ? "add" : "delete"](entry.target.id);
      const first = [...links.keys()].find((id) => seen.has(id));
      if (!first) return;
      for (const [id, link] of links) {
        if (id === first) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }, { rootMargin: "-64px 0px -60% 0px" });
    for (const id of links.keys()) watcher.observe(document.getElementById(id));
  }

  // Print what is folded, but for the raw records.
  addEventListener("beforeprint", () => {
    for (const part of all("main details:not(.record):not(.kinds)")) {
      if (!part.open) { part.open = true; part.dataset.printed = "1"; }
    }
  });
  addEventListener("afterprint", () => {
    for (const part of all("details[data-printed]")) { part.open = false; delete part.dataset.printed; }
  });
})();
