// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/render/machine_and_preflight.hpp"
#include "analysis/render/microbench_tables.hpp"
#include "analysis/render/render.hpp"

namespace isoscale::analysis::render {
namespace {

/// Returns the text with "_" in place of blanks, since blanks separate the columns; "none" for an
/// empty text.
std::string word(std::string text) {
  text = escape(text);
  std::ranges::replace(text, ' ', '_');
  return text.empty() ? "none" : text;
}

std::string decimal(std::optional<double> value, double unit) {
  if (!value) return "N/A";
  const double scaled = *value / unit;
  return fmt::format("{:.{}f}", scaled, scaled < 10000 ? 2 : scaled < 100000 ? 1 : 0);
}

/// Returns the four columns for the out-of-place or the in-place row: time in us, algbw and busbw
/// in GB/s (10^9 bytes/s), and the number of wrong elements.
std::string placement(const microbench::RowReport* row) {
  constexpr double micro = 1e-6, giga = 1e9;
  const bool ok = row != nullptr && microbench::has_rates(*row->data) && row->time;
  const std::string wrong =
      ok && row->data->wrong ? std::to_string(*row->data->wrong) : std::string{"N/A"};
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:>5}",
                     decimal(ok ? std::optional{row->time->median} : std::nullopt, micro),
                     decimal(ok ? row->algbw : std::nullopt, giga),
                     decimal(ok ? row->busbw : std::nullopt, giga), wrong);
}

/// The out-of-place and the in-place row of one size of a collective; one of them may be null.
struct PlacePair {
  const microbench::RowReport* out_of_place = nullptr;
  const microbench::RowReport* in_place = nullptr;
  [[nodiscard]] const microbench::RowReport& any() const {
    return out_of_place ? *out_of_place : *in_place;
  }
};

/// Pairs the rows of a collective that differ only in being in place or out of place.
std::vector<PlacePair> pairs_of(const std::vector<const microbench::RowReport*>& rows) {
  const auto size_of = [](const results::RowData& row) {
    const auto number = [&](const char* key) { return number_of(row, key).value_or(-1); };
    return std::tuple{number("bytes"), number("count"), number("root"), text_of(row, "dtype"),
                      text_of(row, "reduction")};
  };
  std::vector<PlacePair> pairs;
  std::map<decltype(size_of(*rows.front()->data)), std::size_t> open;  // the last pair of each size
  for (const microbench::RowReport* const row : rows) {
    const auto place =
        text_of(*row->data, "in_place") == "yes" ? &PlacePair::in_place : &PlacePair::out_of_place;
    const auto [last, is_new] = open.try_emplace(size_of(*row->data), pairs.size());
    if (!is_new && pairs[last->second].*place != nullptr) last->second = pairs.size();
    if (last->second == pairs.size()) pairs.emplace_back();
    pairs[last->second].*place = row;
  }
  return pairs;
}

std::string size_line(const PlacePair& pair) {
  const results::RowData& data = *pair.any().data;
  return fmt::format("{:>12.0f}  {:>12.0f}  {:>8}  {:>6}  {:>6.0f}{}{}\n",
                     number_of(data, "bytes").value_or(0), number_of(data, "count").value_or(0),
                     word(nccl_type_name(text_of(data, "dtype"))), word(text_of(data, "reduction")),
                     number_of(data, "root").value_or(-1), placement(pair.out_of_place),
                     placement(pair.in_place));
}

constexpr std::string_view columns_heading =
    "#                                                               out-of-place"
    "                      in-place\n"
    "#       size         count      type   redop    root"
    "     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong\n"
    "#        (B)    (elements)                          "
    "     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";

/// Returns the table of a collective (see collective_name()), below a line with the settings that
/// are known; each process of Isoscale has one thread (nThread 1). Programs that read this format
/// look for the last line, the average bus bandwidth; it is left out if no size has a bus
/// bandwidth.
std::string table_text(const PointReport& point, const std::string& name,
                       const std::vector<const microbench::RowReport*>& rows) {
  constexpr double giga = 1e9;
  std::string lines;
  std::vector<double> sizes;
  bool is_checked = false;
  double sum = 0;  // sum of bus bandwidths in GB/s
  int failed_checks = 0, count = 0;
  for (const PlacePair& pair : pairs_of(rows)) {
    lines += size_line(pair);
    sizes.push_back(number_of(*pair.any().data, "bytes").value_or(0));
    for (const microbench::RowReport* const row : {pair.out_of_place, pair.in_place}) {
      if (row == nullptr) continue;
      is_checked = is_checked || row->data->wrong;
      if (row->data->wrong.value_or(0) > 0) ++failed_checks;
      if (const std::string why = escape(row_excuse(*row)); !why.empty())
        lines += "# " + why + "\n";
      if (!microbench::has_rates(*row->data) || !row->time || !row->busbw) continue;
      sum += *row->busbw / giga;
      ++count;
    }
  }
  const auto [smallest, largest] = std::ranges::minmax(sizes);
  return fmt::format(
      "#\n# {}: {}\n# nThread 1 minBytes {:.0f} maxBytes {:.0f} validation: {:d}\n#\n{}{}"
      "# Out of bounds values : {} {}\n{}",
      bench_title(point), escape(name), smallest, largest, is_checked, columns_heading, lines,
      failed_checks, failed_checks == 0 ? "OK" : "FAILED",
      count == 0 ? "" : fmt::format("# Avg bus bandwidth    : {:g}\n", sum / count));
}

}  // namespace

std::string nccl_type_name(const std::string& dtype) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> names{
      {{"f64", "double"},
       {"f32", "float"},
       {"tf32", "float"},
       {"f16", "half"},
       {"bf16", "bfloat16"},
       {"e4m3", "f8e4m3"},
       {"e5m2", "f8e5m2"},
       {"i8", "int8"},
       {"u8", "uint8"},
       {"i32", "int32"},
       {"i64", "int64"}}};
  const auto* const found =
      std::ranges::find(names, dtype, &std::pair<std::string_view, std::string_view>::first);
  return found == names.end() ? dtype : std::string{found->second};
}

std::string render_nccl_tests(const merge::Report& whole) {
  std::string text;
  for (const RunReport& report : whole.runs) {
    text += fmt::format("# {}\n", headline(report));
    text +=
        "# time: median over plays of the slowest rank's time of one call; algbw and busbw by it\n";
    bool any = false;
    for (const PointReport& point : report.benches) {
      for (const auto& [name, rows] : grouped(collective_rows(point), collective_name)) {
        text += table_text(point, name, rows);
        any = true;
      }
    }
    if (!any) text += "# no collective was measured\n";
  }
  return text;
}

}  // namespace isoscale::analysis::render
