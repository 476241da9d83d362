// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "calibration/fit_calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "results/records/point_facts.hpp"
#include "statistics/estimate.hpp"
#include "statistics/quantiles_and_fits.hpp"

namespace isoscale::calibration {
namespace {

constexpr std::array<std::string_view, 10> collectives{
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",
    "all_to_all", "gather",         "scatter",    "sendrecv",  "barrier"};

using results::CalibrationCurve;
using results::CurveSample;
using results::GemmCeiling;
using results::GemmRate;
using results::PointData;
using results::RowData;
using results::RunData;

double distance(const GemmRate& a, const GemmRate& b) {
  const auto log_flop = [](const GemmRate& at) { return std::log(at.m * at.n * at.k * at.batch); };
  const auto log_least = [](const GemmRate& at) { return std::log(std::min({at.m, at.n, at.k})); };
  return std::hypot(log_flop(a) - log_flop(b), log_least(a) - log_least(b));
}

bool same_kind(const GemmRate& a, std::string_view dtype, std::string_view cache) {
  return a.dtype == dtype && a.cache == cache;
}

constexpr double same = 1e-9;  ///< distances, and differences of distances, below this count as 0

/// Returns the rate of the shape in `gemms` that is nearest to `shape` among those of the same
/// element type and cache state, or the geometric mean of several that are equally near; absent if
/// there are none. `shape`, which is itself in `gemms`, is left out, and so are all shapes at
/// distance 0 from it, such as the one with m and k swapped: they would predict each other.
std::optional<double> nearest_rate(std::span<const GemmRate> gemms, const GemmRate& shape) {
  double least = std::numeric_limits<double>::infinity();
  double log_sum = 0;
  int count = 0;
  for (const GemmRate& at : gemms) {
    if (!same_kind(at, shape.dtype, shape.cache)) continue;
    const double away = distance(at, shape);
    if (&at == &shape || away < same || away > least + same) continue;
    if (away < least - same) {
      least = away;
      log_sum = 0;
      count = 0;
    }
    log_sum += std::log(at.rate);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return std::exp(log_sum / count);
}

/// Returns the cache state, "cold" or "warm", of the GEMM shapes from which the error of a type's
/// ceiling (its highest rate) is computed: cold if there are cold shapes, since the operands of
/// most programs come from memory, not from cache. Returns "" if the type has no shapes.
std::string deciding_cache(std::span<const GemmRate> gemms, std::string_view dtype) {
  const bool cold =
      std::ranges::any_of(gemms, [&](const GemmRate& at) { return same_kind(at, dtype, "cold"); });
  if (cold) return "cold";
  const auto any = std::ranges::find(gemms, dtype, &GemmRate::dtype);
  return any == gemms.end() ? "" : any->cache;
}

/// The properties that identify a curve of time against size.
struct Key {
  std::string op, dtype, link_class, implementation;
  int members = 0;
  std::optional<int> nodes{};
  auto operator<=>(const Key&) const = default;
};

/// Indices of Samples::by_preference. Samples of collectives that ran in all groups at once have
/// the index all_groups, those of one group alone one_group. For a point with labels such as
/// "oversubscribed", which say that its times do not represent the machine, of_labelled_point is
/// added to the index. A curve is fitted to the samples at the lowest index that has any.
constexpr std::size_t all_groups = 0, one_group = 1, of_labelled_point = 2;

struct Samples {
  std::array<std::vector<CurveSample>, 4> by_preference;
  std::string labels;  ///< labels of the point with labels that was added last
};

/// Returns those labels of a point that say that its times do not represent the machine, such as
/// "oversubscribed" (results::unsound), in one text; "" if there are none.
std::string labels_of(const PointData& point) {
  return base::listed(results::unsound(point.labels));
}

/// True if the row of a collective was measured in the way in which training programs call
/// collectives: with sums if it reduces, with the library's own choice of algorithm and protocol,
/// and without registered buffers.
bool is_plain(const RowData& row) {
  const auto is = [&](const char* key, std::initializer_list<std::string_view> plain) {
    const std::string said = text_of(row, key);
    return said.empty() || std::ranges::find(plain, said) != plain.end();
  };
  return is("reduction", {"none", "sum"}) && is("registration", {"none"}) &&
         is("algorithm", {"library"}) && is("protocol", {"library"});
}

/// Returns the ranks of the group in which a row's collective ran, or of the first group if it ran
/// in all groups along an axis. If the row names no axis, these are the ranks that it names or, if
/// it names none, all ranks of the point.
std::vector<int> group_of(const PointData& point, const RowData& row) {
  if (!row.ranks.empty() && text_of(row, "groups") == "one") return row.ranks;
  const std::string name = text_of(row, "axis");
  for (const mesh::Axis axis : mesh::all_axes) {
    if (name == mesh::name(axis)) return mesh::group_members(point.mesh, 0, axis);
  }
  if (!row.ranks.empty()) return row.ranks;
  std::vector<int> all(static_cast<std::size_t>(point.ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

class Collector {
 public:
  explicit Collector(const RunData& run) : run_(run) {
    for (const PointData& point : run.points) {
      for (const RowData& row : point.rows) {
        if (row.status == results::PointStatus::ok && row.wrong.value_or(0) == 0) add(point, row);
      }
    }
  }

  [[nodiscard]] std::vector<CalibrationCurve> curves() const {
    std::vector<CalibrationCurve> result;
    for (const auto& [key, samples] : samples_) {
      const auto chosen =
          std::ranges::find_if(samples.by_preference, [](const auto& of) { return !of.empty(); });
      CalibrationCurve curve = fit_curve(*chosen);
      if (curve.samples.empty()) continue;
      const auto preference = static_cast<std::size_t>(chosen - samples.by_preference.begin());
      if (preference >= of_labelled_point) curve.labels = samples.labels;
      std::tie(curve.op, curve.dtype, curve.link_class, curve.implementation) =
          std::tie(key.op, key.dtype, key.link_class, key.implementation);
      std::tie(curve.members, curve.nodes) = std::tie(key.members, key.nodes);
      result.push_back(std::move(curve));
    }
    return result;
  }
  /// Returns one rate for each measured row of a multiplication.
  [[nodiscard]] const std::vector<GemmRate>& gemm_rows() const { return gemm_rows_; }
  /// Returns one rate for each combination of element type, cache state and shape: the median over
  /// rank counts and transposes. Points with labels count only where there are no others.
  [[nodiscard]] std::vector<GemmRate> gemms() const {
    std::map<std::tuple<std::string, std::string, double, double, double, double>,
             std::vector<const GemmRate*>>
        of_shape;
    for (const GemmRate& row : gemm_rows_) {
      of_shape[{row.dtype, row.cache, row.m, row.n, row.k, row.batch}].push_back(&row);
    }
    const auto is_plain_point = [](const GemmRate* row) { return row->labels.empty(); };
    std::vector<GemmRate> result;
    for (auto& [key, rows] : of_shape) {
      if (std::ranges::any_of(rows, is_plain_point)) {
        std::erase_if(rows, [&](const GemmRate* row) { return !is_plain_point(row); });
      }
      std::vector<double> rates;
      for (const GemmRate* const row : rows) rates.push_back(row->rate);
      result.push_back(*rows.back());
      result.back().rate = *statistics::median(rates);
    }
    return result;
  }

 private:
  void add(const PointData& point, const RowData& row) {
    const auto time = statistics::median(call_times(row));
    if (!time || !(*time > 0)) return;
    const std::string op = text_of(row, "op");
    if (op == "gemm") {
      add_gemm(point, row, *time);
    } else if (is_collective(op) && is_plain(row)) {
      add_collective(point, row, *time);
    } else if (op == "p2p") {
      add_pair(point, row, *time);
    }
  }

  void add_gemm(const PointData& point, const RowData& row, double time) {
    const auto number = [&](const char* key, double otherwise = 0) {
      return number_of(row, key).value_or(otherwise);
    };
    const GemmRate at{.dtype = text_of(row, "dtype"),
                      .cache = text_of(row, "cache"),
                      .m = number("m"),
                      .n = number("n"),
                      .k = number("k"),
                      .batch = number("batch", 1),
                      .rate = number("flop") / time,
                      .labels = labels_of(point)};
    if (std::min({at.m, at.n, at.k, at.batch}) > 0 && at.rate > 0) gemm_rows_.push_back(at);
  }

  void add_collective(const PointData& point, const RowData& row, double time) {
    const std::string implementation = text_of(row, "implementation");
    const auto members = static_cast<int>(number_of(row, "members").value_or(0));
    if (members < 2) return;
    const Key key{.op = text_of(row, "op"),
                  .dtype = text_of(row, "dtype"),
                  .link_class = text_of(row, "class"),
                  .implementation = implementation.empty() ? "library" : implementation,
                  .members = members,
                  .nodes = nodes_of(run_, point, group_of(point, row))};
    // Programs run all_reduce in place, on the gradients, and all other collectives from one buffer
    // to another. Rows measured in the other way are used only if the point has none of this kind.
    const bool sums = key.op == "all_reduce";
    const std::string_view best = sums ? "yes" : "no", second = sums ? "no" : "yes";
    const auto is_best = [&](const RowData& other) {
      return text_of(other, "in_place") == best && text_of(other, "op") == key.op &&
             text_of(other, "implementation") == implementation;
    };
    if (text_of(row, "in_place") == second && std::ranges::any_of(point.rows, is_best)) return;
    add_sample(point, key, text_of(row, "groups") == "one" ? one_group : all_groups,
               {.bytes = number_of(row, "bytes").value_or(0), .time = time});
  }

  void add_pair(const PointData& point, const RowData& row, double time) {
    const std::string kind = text_of(row, "kind");
    const auto bytes = number_of(row, "bytes"), src = number_of(row, "src"),
               dst = number_of(row, "dst");
    if ((kind != "latency" && kind != "bandwidth") || !bytes || !src || !dst) return;
    const Key key{.op = "p2p",
                  .dtype = "",
                  .link_class = text_of(row, "class"),
                  .implementation = "library",
                  .members = 2,
                  .nodes = nodes_of(run_, point, {static_cast<int>(*src), static_cast<int>(*dst)})};
    add_sample(point, key, all_groups, {.bytes = *bytes, .time = time});
  }

  void add_sample(const PointData& point, const Key& key, std::size_t preference,
                  const CurveSample& sample) {
    Samples& samples = samples_[key];
    const std::string labels = labels_of(point);
    const std::size_t at = preference + (labels.empty() ? 0 : of_labelled_point);
    samples.by_preference[at].push_back(sample);
    if (!labels.empty()) samples.labels = labels;
  }

  const RunData& run_;
  std::map<Key, Samples> samples_;
  std::vector<GemmRate> gemm_rows_;
};

}  // namespace

std::vector<double> call_times(const results::RowData& row) {
  std::vector<double> times;
  times.reserve(row.times.size());
  for (const std::vector<double>& play : row.times) {
    const bool known =
        !play.empty() && std::ranges::all_of(play, [](double time) { return std::isfinite(time); });
    if (known) times.push_back(std::ranges::max(play) / static_cast<double>(row.calls));
  }
  return times;
}

bool is_collective(std::string_view op) {
  return std::ranges::find(collectives, op) != collectives.end();
}

void add_held_out(std::vector<GemmRate>& gemms) {
  for (GemmRate& at : gemms) {
    const auto others = nearest_rate(gemms, at);
    at.held_out = others ? std::optional{*others / at.rate - 1} : std::nullopt;
  }
}

std::vector<GemmCeiling> ceilings_of(std::span<const GemmRate> rows,
                                     std::span<const GemmRate> gemms) {
  std::map<std::string, const GemmRate*> best;
  for (const GemmRate& row : rows) {
    const GemmRate*& known = best[row.dtype];
    const bool is_labelled = !row.labels.empty();
    if (known == nullptr ||
        (is_labelled == !known->labels.empty() ? row.rate > known->rate : !is_labelled)) {
      known = &row;
    }
  }
  std::vector<GemmCeiling> ceilings;
  for (const auto& [dtype, row] : best) {
    std::vector<double> errors;
    for (const GemmRate& at : gemms) {
      if (!same_kind(at, dtype, deciding_cache(gemms, dtype)) || !at.held_out) continue;
      errors.push_back(std::log1p(*at.held_out));
    }
    GemmCeiling& ceiling = ceilings.emplace_back(GemmCeiling{.dtype = dtype,
                                                             .cache = row->cache,
                                                             .rate = row->rate,
                                                             .m = row->m,
                                                             .n = row->n,
                                                             .k = row->k,
                                                             .batch = row->batch,
                                                             .labels = row->labels});
    if (const auto error = statistics::promised_error(errors)) ceiling.error = std::expm1(*error);
  }
  return ceilings;
}

const GemmCeiling* ceiling_of(const results::CalibrationData& calibration, std::string_view dtype) {
  const auto found = std::ranges::find(calibration.ceilings, dtype, &GemmCeiling::dtype);
  return found == calibration.ceilings.end() ? nullptr : &*found;
}

std::optional<int> nodes_of(const RunData& run, const PointData& point,
                            const std::vector<int>& ranks) {
  std::set<int> nodes;
  for (const int rank : ranks) {
    const results::RankFacts* const known = facts_of(run.rank_facts, point, rank);
    if (known == nullptr) return std::nullopt;
    nodes.insert(known->node);
  }
  return static_cast<int>(nodes.size());
}

results::CalibrationData calibrate(const RunData& run) {
  const Collector collector{run};
  results::CalibrationData result{.device = run.device, .curves = collector.curves()};
  result.growth = growth_of(result.curves);
  result.gemms = collector.gemms();
  add_held_out(result.gemms);
  result.ceilings = ceilings_of(collector.gemm_rows(), result.gemms);
  return result;
}

results::CalibrationData calibration_of(const RunData& run) {
  if (!run.calibration) return calibrate(run);
  results::CalibrationData result = *run.calibration;
  const std::vector<GemmRate> rows = Collector{run}.gemm_rows();
  if (!rows.empty()) result.ceilings = ceilings_of(rows, result.gemms);
  return result;
}

}  // namespace isoscale::calibration
