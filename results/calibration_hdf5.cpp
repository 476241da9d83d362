// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "results/field_visitors.hpp"
#include "results/run_hdf5.hpp"

namespace isoscale::results {

namespace {

// A calibration as columns, its form in the file. NaN means that a value is absent.

/// Columns of curves and of their samples. Samples [sample_begin[i], sample_begin[i+1]) belong to
/// curve i.
struct CurveTable {
  std::vector<std::string> op, dtype, link_class, implementation, labels, form;
  std::vector<std::int32_t> members, nodes;
  std::vector<double> latency, latency_lower, latency_upper;
  std::vector<double> bandwidth, bandwidth_lower, bandwidth_upper, error;
  std::vector<std::uint64_t> sample_begin{0};
  std::vector<double> sample_bytes, sample_time, sample_fitted, sample_held_out;
};

/// Columns of growths and of their rank counts. Counts [count_begin[i], count_begin[i+1]) belong to
/// row i.
struct GrowthTable {
  std::vector<std::string> op, dtype, link_class, implementation, law;
  std::vector<double> base, slope, bandwidth_factor;
  std::vector<std::uint64_t> count_begin{0};
  std::vector<std::int32_t> count_members;
  std::vector<double> count_latency, count_bandwidth;
};

struct GemmRateTable {
  std::vector<std::string> dtype, cache, labels;
  std::vector<double> m, n, k, batch, rate, held_out;
};

struct CeilingTable {
  std::vector<std::string> dtype, cache, labels;
  std::vector<double> rate, m, n, k, batch, error;
};

// The layout of the group `calibration`, for the visitors of layout.hpp.

/// Visits the columns that identify curves and growths.
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

double stored(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

template <class Table, class Row>
void put_kind(Table& table, const Row& row) {
  table.op.push_back(row.op);
  table.dtype.push_back(row.dtype);
  table.link_class.push_back(row.link_class);
  table.implementation.push_back(row.implementation);
}

template <class Row, class Table>
Row get_kind(const Table& table, std::size_t at) {
  Row row;
  row.op = table.op[at];
  row.dtype = table.dtype[at];
  row.link_class = table.link_class[at];
  row.implementation = table.implementation[at];
  return row;
}

void put_fitted(const std::optional<Fitted>& fitted, std::vector<double>& value,
                std::vector<double>& lower, std::vector<double>& upper) {
  value.push_back(stored(fitted ? std::optional{fitted->value} : std::nullopt));
  lower.push_back(stored(fitted ? fitted->lower : std::nullopt));
  upper.push_back(stored(fitted ? fitted->upper : std::nullopt));
}

std::optional<Fitted> get_fitted(double value, double lower, double upper) {
  if (std::isnan(value)) return std::nullopt;
  return Fitted{.value = value, .lower = known(lower), .upper = known(upper)};
}

CurveTable curve_table(const std::vector<CalibrationCurve>& curves) {
  CurveTable table;
  for (const CalibrationCurve& curve : curves) {
    put_kind(table, curve);
    table.labels.push_back(curve.labels);
    table.form.push_back(curve.form);
    table.members.push_back(curve.members);
    table.nodes.push_back(curve.nodes);
    put_fitted(curve.latency, table.latency, table.latency_lower, table.latency_upper);
    put_fitted(curve.bandwidth, table.bandwidth, table.bandwidth_lower, table.bandwidth_upper);
    table.error.push_back(stored(curve.error));
    for (const CurveSample& sample : curve.samples) {
      table.sample_bytes.push_back(sample.bytes);
      table.sample_time.push_back(sample.time);
      table.sample_fitted.push_back(sample.fitted);
      table.sample_held_out.push_back(stored(sample.held_out));
    }
    table.sample_begin.push_back(table.sample_bytes.size());
  }
  return table;
}

std::vector<CalibrationCurve> to_curves(const CurveTable& t) {
  const std::size_t count = t.op.size();
  require_lengths(
      {count, t.dtype.size(), t.link_class.size(), t.implementation.size(), t.labels.size(),
       t.members.size(), t.nodes.size(), t.latency.size(), t.latency_lower.size(),
       t.latency_upper.size(), t.bandwidth.size(), t.bandwidth_lower.size(),
       t.bandwidth_upper.size(), t.error.size(), t.sample_begin.size() - 1},
      "the columns of calibration/curves differ in length");
  require_lengths({t.sample_bytes.size(), t.sample_time.size(), t.sample_fitted.size(),
                   t.sample_held_out.size()},
                  "the samples of calibration/curves differ in length");
  require_offsets(t.sample_begin, t.sample_bytes.size(), "'sample_begin' is out of order");
  std::vector<CalibrationCurve> curves;
  for (std::size_t at = 0; at < count; ++at) {
    auto& curve = curves.emplace_back(get_kind<CalibrationCurve>(t, at));
    curve.labels = t.labels[at];
    curve.form = t.form[at];
    curve.members = t.members[at];
    curve.nodes = t.nodes[at];
    curve.latency = get_fitted(t.latency[at], t.latency_lower[at], t.latency_upper[at]);
    curve.bandwidth = get_fitted(t.bandwidth[at], t.bandwidth_lower[at], t.bandwidth_upper[at]);
    curve.error = known(t.error[at]);
    for (std::size_t i = t.sample_begin[at]; i < t.sample_begin[at + 1]; ++i) {
      const bool rises = i == t.sample_begin[at] || t.sample_bytes[i] > t.sample_bytes[i - 1];
      require(rises && t.sample_bytes[i] >= 0 && t.sample_fitted[i] > 0,
              "the samples of a curve are out of order");
      curve.samples.push_back({.bytes = t.sample_bytes[i],
                               .time = t.sample_time[i],
                               .fitted = t.sample_fitted[i],
                               .held_out = known(t.sample_held_out[i])});
    }
  }
  return curves;
}

GrowthTable growth_table(const std::vector<CalibrationGrowth>& rows) {
  GrowthTable table;
  for (const CalibrationGrowth& row : rows) {
    put_kind(table, row);
    table.law.push_back(row.law);
    table.base.push_back(row.base);
    table.slope.push_back(row.slope);
    table.bandwidth_factor.push_back(stored(row.bandwidth_factor));
    table.count_members.insert(table.count_members.end(), row.members.begin(), row.members.end());
    table.count_latency.insert(table.count_latency.end(), row.latency.begin(), row.latency.end());
    table.count_bandwidth.insert(table.count_bandwidth.end(), row.bandwidth.begin(),
                                 row.bandwidth.end());
    table.count_begin.push_back(table.count_members.size());
  }
  return table;
}

std::vector<CalibrationGrowth> to_growth(const GrowthTable& t) {
  const std::size_t count = t.op.size();
  require_lengths(
      {count, t.dtype.size(), t.link_class.size(), t.implementation.size(), t.law.size(),
       t.base.size(), t.slope.size(), t.bandwidth_factor.size(), t.count_begin.size() - 1},
      "the columns of calibration/growth differ in length");
  require_lengths({t.count_members.size(), t.count_latency.size(), t.count_bandwidth.size()},
                  "the counts of calibration/growth differ in length");
  require_offsets(t.count_begin, t.count_members.size(), "'count_begin' is out of order");
  std::vector<CalibrationGrowth> rows;
  for (std::size_t at = 0; at < count; ++at) {
    auto& row = rows.emplace_back(get_kind<CalibrationGrowth>(t, at));
    row.law = t.law[at];
    row.base = t.base[at];
    row.slope = t.slope[at];
    row.bandwidth_factor = known(t.bandwidth_factor[at]);
    for (std::size_t i = t.count_begin[at]; i < t.count_begin[at + 1]; ++i) {
      row.members.push_back(t.count_members[i]);
      row.latency.push_back(t.count_latency[i]);
      row.bandwidth.push_back(t.count_bandwidth[i]);
    }
  }
  return rows;
}

template <class Table, class Row>
void put_shape(Table& table, const Row& row) {
  table.dtype.push_back(row.dtype);
  table.cache.push_back(row.cache);
  table.labels.push_back(row.labels);
  table.m.push_back(row.m);
  table.n.push_back(row.n);
  table.k.push_back(row.k);
  table.batch.push_back(row.batch);
  table.rate.push_back(row.rate);
}

/// Returns the rows of a table of shapes without the value of its last column, whose length is
/// `last_column`: GemmRate and GemmCeiling have different ones. Throws if the columns differ in
/// length.
template <class Row, class Table>
std::vector<Row> get_shapes(const Table& t, std::size_t last_column, const char* what) {
  require_lengths({t.dtype.size(), t.cache.size(), t.labels.size(), t.m.size(), t.n.size(),
                   t.k.size(), t.batch.size(), t.rate.size(), last_column},
                  what);
  std::vector<Row> rows(t.dtype.size());
  for (std::size_t at = 0; at < rows.size(); ++at) {
    rows[at].dtype = t.dtype[at];
    rows[at].cache = t.cache[at];
    rows[at].labels = t.labels[at];
    rows[at].m = t.m[at];
    rows[at].n = t.n[at];
    rows[at].k = t.k[at];
    rows[at].batch = t.batch[at];
    rows[at].rate = t.rate[at];
  }
  return rows;
}

template <class Visit>
void put_table(hdf5::Group& group, const char* name, Visit&& visit) {
  hdf5::Group inner = group.create_group(name);
  PutFields put{inner};
  visit(put);
}

template <class Visit>
void get_table(const hdf5::Group& group, int minor, const char* name, Visit&& visit) {
  const hdf5::Group inner = group.open_group(name);
  GetFields get{inner, minor};
  visit(get);
}

}  // namespace

void put_calibration(hdf5::Group& group, const CalibrationData& calibration) {
  group.set("device", calibration.device);
  const CurveTable curves = curve_table(calibration.curves);
  put_table(group, "curves", [&](auto& put) { visit_curves(put, curves); });
  const GrowthTable growth = growth_table(calibration.growth);
  put_table(group, "growth", [&](auto& put) { visit_growth(put, growth); });
  GemmRateTable gemms;
  for (const GemmRate& row : calibration.gemms) {
    put_shape(gemms, row);
    gemms.held_out.push_back(stored(row.held_out));
  }
  put_table(group, "gemms", [&](auto& put) { visit_gemm_rates(put, gemms); });
  CeilingTable ceilings;
  for (const GemmCeiling& row : calibration.ceilings) {
    put_shape(ceilings, row);
    ceilings.error.push_back(stored(row.error));
  }
  put_table(group, "ceilings", [&](auto& put) { visit_ceilings(put, ceilings); });
}

CalibrationData get_calibration(const hdf5::Group& group, int minor) {
  CalibrationData result{.device = group.text("device")};
  CurveTable curves;
  get_table(group, minor, "curves", [&](auto& get) { visit_curves(get, curves); });
  require(!curves.sample_begin.empty(), "'sample_begin' is out of order");
  result.curves = to_curves(curves);
  GrowthTable growth;
  get_table(group, minor, "growth", [&](auto& get) { visit_growth(get, growth); });
  require(!growth.count_begin.empty(), "'count_begin' is out of order");
  result.growth = to_growth(growth);
  GemmRateTable gemms;
  get_table(group, minor, "gemms", [&](auto& get) { visit_gemm_rates(get, gemms); });
  result.gemms = get_shapes<GemmRate>(gemms, gemms.held_out.size(),
                                      "the columns of calibration/gemms differ in length");
  for (std::size_t at = 0; at < result.gemms.size(); ++at) {
    result.gemms[at].held_out = known(gemms.held_out[at]);
  }
  CeilingTable ceilings;
  get_table(group, minor, "ceilings", [&](auto& get) { visit_ceilings(get, ceilings); });
  result.ceilings = get_shapes<GemmCeiling>(ceilings, ceilings.error.size(),
                                            "the columns of calibration/ceilings differ in length");
  for (std::size_t at = 0; at < result.ceilings.size(); ++at) {
    result.ceilings[at].error = known(ceilings.error[at]);
  }
  return result;
}

std::uint64_t room_for(const CalibrationData& calibration) {
  constexpr std::uint64_t structure = std::uint64_t{512} * 1024, row = 1024, sample = 48;
  std::uint64_t bytes = structure + row * (calibration.curves.size() + calibration.growth.size() +
                                           calibration.gemms.size() + calibration.ceilings.size());
  for (const CalibrationCurve& curve : calibration.curves) bytes += curve.samples.size() * sample;
  for (const CalibrationGrowth& at : calibration.growth) bytes += at.members.size() * sample;
  return bytes;
}

}  // namespace isoscale::results
