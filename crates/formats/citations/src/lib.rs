//! Citations: the open citation dumps, DOI rules and the memory-mapped citation graph.
