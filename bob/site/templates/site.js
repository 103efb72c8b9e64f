"use strict";

// Pages from a file system may start no worker, and the search of the theme wants one. There a frame does its work.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.body.appendChild(frame);
      this.frame = frame;
      this.waiting = [];
      const inside = frame.contentWindow;
      inside.postMessage = data => setTimeout(() => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      });
      inside.importScripts = (...scripts) => scripts.reduce((before, one) => before.then(() => new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        script.src = new URL(one, url).href;
        script.onload = done;
        script.onerror = failed;
        inside.document.body.appendChild(script);
      })), Promise.resolve());
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href).href;
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach(data => this.postMessage(data));
      };
      inside.document.body.appendChild(script);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}

// The filter of the table: what is chosen is in the address, so that it can be sent to somebody.
function filterTable() {
  const form = document.getElementById("filter"), table = document.getElementById("living");
  if (!form || !table) return;
  const boxes = [...form.elements].filter(one => one.type === "checkbox");
  const chosen = name => boxes.filter(box => box.name === name && box.checked).map(box => box.value);
  const shows = (values, value) => !values.length || values.includes(value);

  function show() {
    const rows = [...table.tBodies[0].rows], properties = chosen("property");
    const kernels = chosen("kernel"), systems = chosen("fs"), references = chosen("reference");
    for (const row of rows) {
      row.hidden = !(shows(kernels, row.dataset.kernel) && shows(systems, row.dataset.fs) && shows(references, row.dataset.reference));
    }
    for (const cell of table.querySelectorAll("[data-property]")) cell.hidden = !shows(properties, cell.dataset.property);
    for (const head of table.querySelectorAll("th[data-family]:not([data-property])")) {
      const count = table.querySelectorAll(`th[data-property][data-family="${head.dataset.family}"]:not([hidden])`).length;
      head.hidden = !count;
      if (count) head.colSpan = count;
    }
    const left = rows.filter(row => !row.hidden).length;
    for (const count of document.querySelectorAll("[data-counts]")) {
      const marks = table.querySelectorAll(`tr:not([hidden]) > td.${count.dataset.counts}:not([hidden])`);
      count.textContent = marks.length;
    }
    document.getElementById("shown").textContent = `${left} of ${rows.length} configurations are shown.`;
  }

  function read() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    for (const box of boxes) box.checked = wanted.getAll(box.name).includes(box.value);
    show();
  }

  function write() {
    const said = new URLSearchParams(boxes.filter(box => box.checked).map(box => [box.name, box.value])).toString();
    history.replaceState(null, "", said ? `#${said}` : location.pathname + location.search);
    show();
  }

  form.hidden = false;
  form.addEventListener("change", write);
  form.addEventListener("reset", () => setTimeout(write));
  window.addEventListener("hashchange", () => location.hash.includes("=") && read());
  read();
}

// The evidence that an address names is shown.
function openEvidence() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const closed = named && named.closest("details");
  if (closed && !closed.open) {
    closed.open = true;
    named.scrollIntoView();
  }
}

// The theme takes words such as --expect for operators of its search, and finds nothing. It reads them without these
// signs; it is not loaded yet.
const plain = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
Object.defineProperty(HTMLInputElement.prototype, "value", {
  ...plain,
  get() {
    const said = plain.get.call(this);
    return this.dataset.mdComponent === "search-query" ? said.replace(/(^|\s)[-+^~*:]+(?=\S)/g, "$1") : said;
  },
});

document.addEventListener("DOMContentLoaded", () => {
  filterTable();
  openEvidence();
  window.addEventListener("hashchange", openEvidence);
});
