(function () {
  "use strict";
  document.documentElement.classList.add("js");

  function all(from, what) {
    return Array.prototype.slice.call(from.querySelectorAll(what));
  }

  function worth(cell) {
    var text = cell.getAttribute("data-v") || cell.textContent.trim(), number = parseFloat(text);
    return isNaN(number) ? text.toLowerCase() : number;
  }

  function compare(a, b) {
    if (typeof a === typeof b)
      return a < b ? -1 : a > b ? 1 : 0;
    return typeof a === "number" ? -1 : 1;
  }

  /* A table is sorted by whole bodies, where a layer's details follow it, or by rows. */
  function sortBy(table, column, down) {
    var bodies = all(table, "tbody"), items = bodies.length > 1 ? bodies : all(bodies[0], "tr");
    var rows = items.map(function (item, i) {
      var cell = (item.cells ? item : item.rows[0]).cells[column];
      return { item: item, key: worth(cell), at: Number(item.getAttribute("data-at") || i) };
    });
    rows.sort(function (a, b) {
      var empty = (a.key === "") - (b.key === "");
      return empty || (down ? -1 : 1) * compare(a.key, b.key) || a.at - b.at;
    });
    rows.forEach(function (row) { row.item.parentNode.appendChild(row.item); });
  }

  all(document, "table.sort").forEach(function (table) {
    var bodies = all(table, "tbody"), heads = all(table.tHead, "th");
    (bodies.length > 1 ? bodies : all(bodies[0] || table, "tbody tr")).forEach(function (item, i) { item.setAttribute("data-at", i); });
    heads.forEach(function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      while (head.firstChild)
        button.appendChild(head.firstChild);
      head.appendChild(button);
      button.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sortBy(table, column, down);
      });
    });
  });

  function details(link) {
    return document.getElementById(link.getAttribute("href").slice(1));
  }

  function open(link, yes) {
    details(link).classList.toggle("open", yes);
    link.setAttribute("aria-expanded", String(yes));
  }

  all(document, "a.open").forEach(function (link) {
    link.setAttribute("role", "button");
    open(link, false);
    link.addEventListener("click", function (event) {
      event.preventDefault();
      open(link, link.getAttribute("aria-expanded") !== "true");
    });
    link.addEventListener("keydown", function (event) {
      if (event.key === " ") {
        event.preventDefault();
        link.click();
      }
    });
  });

  /* The address, and bars of the charts, name a layer. */
  function follow() {
    var more = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    var link = more && more.classList.contains("more") && more.parentNode.querySelector("a.open");
    if (!link)
      return;
    more.parentNode.hidden = false;
    open(link, true);
    link.scrollIntoView({ block: "start" });
    link.focus({ preventScroll: true });
  }
  window.addEventListener("hashchange", follow);
  all(document, ".chart a").forEach(function (bar) {
    bar.addEventListener("click", function () {
      if (location.hash === bar.getAttribute("href"))
        follow();
    });
  });

  all(document, ".tools").forEach(function (tools) {
    var table = tools.nextElementSibling, bodies = all(table, "tbody"), word = tools.querySelector("input");
    var kind = tools.querySelector("select"), said = tools.querySelector("output"), button = tools.querySelector("button");
    function filter() {
      var want = word.value.trim().toLowerCase(), shown = 0;
      bodies.forEach(function (body) {
        var fits = (!want || body.textContent.toLowerCase().indexOf(want) >= 0) && (!kind.value || body.getAttribute("data-kind") === kind.value);
        body.hidden = !fits;
        shown += fits;
      });
      said.textContent = shown === bodies.length ? bodies.length + " layers" : shown + " of " + bodies.length + " layers";
    }
    word.addEventListener("input", filter);
    kind.addEventListener("change", filter);
    button.addEventListener("click", function () {
      var links = bodies.filter(function (body) { return !body.hidden; }).map(function (body) { return body.querySelector("a.open"); });
      var yes = !links.every(function (link) { return link.getAttribute("aria-expanded") === "true"; });
      links.forEach(function (link) { open(link, yes); });
      button.textContent = yes ? "Close all" : "Open all";
    });
    all(kind, "option").forEach(function (option) {
      if (option.value && !bodies.some(function (body) { return body.getAttribute("data-kind") === option.value; }))
        option.remove();
    });
    tools.hidden = false;
    filter();
  });
  follow();
})();
