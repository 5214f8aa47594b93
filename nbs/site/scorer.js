// What the search finds first. Sphinx's own numbers, and before them the how-to or the chapter whose title has the words.
var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    const inTitle = score >= Scorer.title;
    if (page.startsWith("how_to")) return score + (inTitle ? 200 : 3);
    return score + (inTitle && /^\d\d_/.test(page) ? 100 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
