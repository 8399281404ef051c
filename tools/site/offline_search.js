// Replaces what the search fetches, which browsers refuse to pages that were opened as files.
(() => {
  const source = WORKER_SOURCE;
  const Started = window.Worker;
  window.Worker = function () {
    return new Started(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  };
})();
var __search = { index: Promise.resolve(SEARCH_INDEX) };
