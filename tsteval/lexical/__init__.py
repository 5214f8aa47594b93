"""Words: clipped matches, statistics of BLEU and ROUGE, links, quantities, English."""
