// How the search of this site ranks what it finds: pages for beginners before pages for experts, titles before text.
// Sphinx gives 5 points for words in a text, 15 for words in a title, and up to 100 for a search word of a page.
const PARTS = ["project/", "evidence/", "reference/", "concepts/", "guides/", "start/"];

var Scorer = {
  score: ([page, title, anchor, description, score, file, kind]) =>
    score + PARTS.findIndex((part) => page.startsWith(part)) + (kind === "title" ? 40 : 0),

  // what Sphinx has by default
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
