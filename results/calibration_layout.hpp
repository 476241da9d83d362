// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "results/calibration_table.hpp"

/// Where everything lies in the group `calibration`, for the visitors of layout.hpp.
namespace isoscale::results {

/// What tells curves and growths apart.
template <class Visitor, class Table>
void visit_kind(Visitor& visit, Table& table) {
  visit.column("op", table.op, {"text", "collective, or p2p"});
  visit.column("dtype", table.dtype, {"text", "element type"});
  visit.column("class", table.link_class, {"text", "link class"});
  visit.column("implementation", table.implementation, {"text", "library, ring, tree, ..."});
}

template <class Visitor, class Table>
void visit_curves(Visitor& visit, Table& table) {
  visit_kind(visit, table);
  visit.column("labels", table.labels, {"text", "labels of the points it rests on"});
  visit.column("form", table.form,
               {"text", "what is straight between sizes: log (time over size) or linear"});
  visit.column("members", table.members, {"1", "ranks of a group"});
  visit.column("nodes", table.nodes, {"1", "nodes that a group is on; 0 = not known"});
  visit.column("latency", table.latency, {"s", "of the smallest sizes; NaN = not in sight"});
  visit.column("latency_lower", table.latency_lower, {"s", "95% interval; NaN = none"});
  visit.column("latency_upper", table.latency_upper, {"s", "95% interval; NaN = none"});
  visit.column("bandwidth", table.bandwidth,
               {"B/s", "algbw towards infinite size; NaN = not in sight"});
  visit.column("bandwidth_lower", table.bandwidth_lower, {"B/s", "95% interval; NaN = none"});
  visit.column("bandwidth_upper", table.bandwidth_upper, {"B/s", "95% interval; NaN = none"});
  visit.column("error", table.error,
               {"1", "a predicted time t is promised within t / (1 + error) and t (1 + error)"});
  visit.column("sample_begin", table.sample_begin, {"1", "where each curve's samples begin"});
  visit.column("sample_bytes", table.sample_bytes, {"B", "size of one call"});
  visit.column("sample_time", table.sample_time, {"s", "one call, median as measured"});
  visit.column("sample_fitted", table.sample_fitted,
               {"s", "one call by the curve; the residual is time / fitted - 1"});
  visit.column("sample_held_out", table.sample_held_out,
               {"1", "what the other sizes predict over what was measured, minus 1; NaN = end"});
}

template <class Visitor, class Table>
void visit_growth(Visitor& visit, Table& table) {
  visit_kind(visit, table);
  visit.column("law", table.law, {"text", "what latency follows: log2 n or n; empty = not known"});
  visit.column("base", table.base, {"s", "latency = base + slope * law"});
  visit.column("slope", table.slope, {"s", "latency = base + slope * law"});
  visit.column("bandwidth_factor", table.bandwidth_factor,
               {"1", "bandwidth among the most ranks over that among the fewest"});
  visit.column("count_begin", table.count_begin, {"1", "where each row's counts begin"});
  visit.column("count_members", table.count_members, {"1", "ranks of a group"});
  visit.column("count_latency", table.count_latency, {"s", "latency among them; NaN = not known"});
  visit.column("count_bandwidth", table.count_bandwidth,
               {"B/s", "bandwidth among them; NaN = not known"});
}

template <class Visitor, class Table>
void visit_shape(Visitor& visit, Table& table) {
  visit.column("dtype", table.dtype, {"text", "element type"});
  visit.column("cache", table.cache, {"text", "cold or warm"});
  visit.column("labels", table.labels, {"text", "labels of the points it rests on"});
  visit.column("m", table.m, {"1", "rows of the product"});
  visit.column("n", table.n, {"1", "columns of the product"});
  visit.column("k", table.k, {"1", "inner extent"});
  visit.column("batch", table.batch, {"1", "products in one call"});
  visit.column("rate", table.rate, {"FLOP/s", "of one rank, median"});
}

template <class Visitor, class Table>
void visit_gemm_rates(Visitor& visit, Table& table) {
  visit_shape(visit, table);
  visit.column("held_out", table.held_out,
               {"1", "what the other shapes predict over what was measured, minus 1; NaN = none"});
}

template <class Visitor, class Table>
void visit_ceilings(Visitor& visit, Table& table) {
  visit_shape(visit, table);
  visit.column("error", table.error,
               {"1", "a predicted rate r is promised within r / (1 + error) and r (1 + error)"});
}

}  // namespace isoscale::results
