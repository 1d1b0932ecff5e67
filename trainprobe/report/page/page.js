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
  const stacks = one("#stack-search");
  if (stacks) {
    const items = all("#stack-tree li").map((item) => ({
      item,
      set: one(".set", item).textContent,
      frames: all(".frame", item.firstElementChild.firstElementChild.tagName === "SUMMARY"
        ? item.firstElementChild.firstElementChild : item.firstElementChild),
    }));
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
