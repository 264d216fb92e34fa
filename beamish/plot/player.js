// Plays the figures of a page: shows what had come by a moment of processing time. Each mark of a drawing says since when it
// is there (data-since); a pane's box also when it begins to grow and when it is taken back (data-begins, data-until).
(() => {
  const SECONDS = 14; // that a figure plays
  const PLAY = "M4 2l11 7-11 7z", PAUSE = "M4 2h4v14H4zM10 2h4v14h-4z", SUN = "M9 1a8 8 0 100 16A8 8 0 009 1zm0 2v12A6 6 0 019 3z";
  const make = (parent, name, attributes) => {
    const drawn = /^(svg|path|line|clipPath|rect)$/.test(name);
    const made = drawn ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return parent.appendChild(made);
  };
  const button = (bar, words, path) => {
    const made = make(bar, "button", { type: "button", "aria-label": words, title: words });
    return [made, make(make(made, "svg", { viewBox: "0 0 18 18", "aria-hidden": "true" }), "path", { d: path })];
  };
  const inWords = (time, byClock) => {
    if (!byClock) return `step ${Math.ceil(time)}`;
    if (Math.abs(time) >= 864e8) return new Date(time / 1000).toISOString().slice(11, 19);
    const seconds = Math.max(0, Math.floor(time / 1e6)), two = (number) => String(number).padStart(2, "0");
    const hours = Math.floor(seconds / 3600), minutes = Math.floor(seconds / 60) % 60, rest = two(seconds % 60);
    return hours ? `${hours}:${two(minutes)}:${rest}` : `${minutes}:${rest}`;
  };

  // What a drawing needs to show a moment: a cover over what has not come yet, and a line where it is.
  const prepare = (svg) => {
    const [first, last] = JSON.parse(svg.dataset.times), end = JSON.parse(svg.dataset.moments).at(-1);
    const id = `past-${Math.random().toString(36).slice(2)}`; // the same figure may be on a page twice
    const panels = JSON.parse(svg.dataset.panels).map(([left, top, right, bottom], number) => {
      const clip = make(svg, "clipPath", { id: `${id}-${number}` });
      const past = make(clip, "rect", { x: 0, width: right + 40, y: 0, height: bottom });
      return { top, bottom, past, line: make(svg, "line", { class: "now", x1: left, x2: right }) };
    });
    const marks = [...svg.querySelectorAll("[data-kind]")].map((element) => {
      const { kind, panel, since, begins, until } = element.dataset;
      if (["pane", "ground", "hatch", "open", "watermark"].includes(kind)) element.style.clipPath = `url(#${id}-${panel})`;
      return { element, since: Number(since ?? -Infinity), begins: Number(begins ?? since ?? -Infinity), until: Number(until ?? Infinity) };
    });
    return (time) => {
      for (const { top, bottom, past, line } of panels) {
        const y = bottom - (bottom - top) * (time - first) / (last - first);
        past.setAttribute("y", time >= end ? 0 : y - 1);
        past.setAttribute("height", bottom + 2);
        line.setAttribute("y1", y);
        line.setAttribute("y2", y);
        line.style.display = time >= end ? "none" : "";
      }
      for (const { element, since, begins, until } of marks) {
        element.classList.toggle("ahead", time < Math.min(begins, since));
        element.classList.toggle("grows", begins <= time && time < since);
        element.classList.toggle("gone", until <= time);
      }
    };
  };

  const start = (figure) => {
    figure.dataset.ready = "";
    const svgs = [...figure.querySelectorAll(":scope > svg")], byClock = figure.dataset.clock === "true";
    const [first] = JSON.parse(svgs[0].dataset.times), moments = JSON.parse(svgs[0].dataset.moments), last = moments.at(-1);
    const shows = svgs.map(prepare);
    const bar = make(figure, "div", { class: "bar" });
    const [play, sign] = button(bar, "Play", PLAY);
    const slider = make(bar, "input", { type: "range", min: 0, max: 1000, step: "any", value: 1000, "aria-label": "processing time" });
    const output = make(bar, "output", {});
    const [colors] = button(bar, "Light or dark", SUN);
    let time = last, frame = 0;
    const show = (to) => {
      time = Math.min(Math.max(to, first), last);
      slider.value = 1000 * (time - first) / (last - first);
      output.textContent = inWords(time, byClock);
      slider.setAttribute("aria-valuetext", output.textContent);
      figure.dataset.time = time;
      shows.forEach((draw) => draw(time));
    };
    const stop = () => {
      cancelAnimationFrame(frame);
      frame = 0;
      sign.setAttribute("d", PLAY);
      play.setAttribute("aria-label", "Play");
    };
    const run = () => {
      const calm = matchMedia("(prefers-reduced-motion: reduce)").matches; // then it goes from one moment to the next
      if (time >= last) show(first);
      const began = performance.now(), from = time, speed = (last - first) / SECONDS / 1000;
      const next = (now) => {
        const there = from + (now - began) * speed;
        const to = calm && there < last ? Math.max(from, ...moments.filter((moment) => moment <= there)) : there;
        if (to !== time) show(to);
        if (time >= last) stop();
        else frame = requestAnimationFrame(next);
      };
      sign.setAttribute("d", PAUSE);
      play.setAttribute("aria-label", "Pause");
      frame = requestAnimationFrame(next);
    };
    play.addEventListener("click", () => (frame ? stop() : run()));
    slider.addEventListener("input", () => { stop(); show(first + (last - first) * slider.value / 1000); });
    colors.addEventListener("click", () => {
      const whose = figure.closest(".beamish-colors") ?? figure;
      whose.dataset.colors = getComputedStyle(whose).colorScheme === "dark" ? "day" : "night";
    });
    show(last);
  };

  const startAll = () => document.querySelectorAll(".beamish:not([data-ready])").forEach(start);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
  else setTimeout(startAll); // in a notebook the figure comes right after
})();
