// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/reader/appended_summary.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <compare>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "results/hdf5/file_digest.hpp"
#include "results/records/measured_step_time.hpp"
#include "results/records/point_fields.hpp"
#include "results/records/records_as_json_and_cbor.hpp"
#include "statistics/estimate.hpp"

namespace isoscale::results {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The facts of a rank that a summary keeps. Ranks with equal facts share one element of the
/// summary's list.
struct KeptFacts {
  std::string host{};
  int node = 0;
  std::string cpu_model{}, gpu_name{};
  std::optional<double> cores{};
  int ranks = 0;  ///< number of ranks with these facts

  auto operator<=>(const KeptFacts&) const = default;
};

KeptFacts kept_facts(const RankFacts& facts) {
  const auto cores = facts.number.find("cores");
  const bool is_known = cores != facts.number.end() && std::isfinite(cores->second);
  return {.host = facts.host,
          .node = facts.node,
          .cpu_model = text_of(facts, "cpu_model"),
          .gpu_name = text_of(facts, "gpu_name"),
          .cores = is_known ? std::optional{cores->second} : std::nullopt};
}

}  // namespace

template <>
inline constexpr auto fields_of<KeptFacts> =
    std::tuple{attribute("host", &KeptFacts::host, "name of the node"),
               attribute("node", &KeptFacts::node, "number of the node"),
               attribute("cpu_model", &KeptFacts::cpu_model, "the processor's name"),
               attribute("gpu_name", &KeptFacts::gpu_name, "name of the GPU"),
               attribute("cores", &KeptFacts::cores, "physical cores of the node"),
               attribute("ranks", &KeptFacts::ranks, "ranks that have the same facts")};

template <>
inline constexpr auto fields_of<PointFigures> = std::tuple{
    attribute("counted_steps", &PointFigures::counted, "untraced steps that count"),
    attribute("steps", &PointFigures::steps, "all steps of the point"),
    attribute("rows", &PointFigures::rows, "rows of a micro-benchmark"),
    attribute("step_time", &PointFigures::step_time, "seconds, median of the steps that count"),
    attribute("part_file", &PointFigures::part_file, "file that holds the point")};

namespace {

json to_json(const std::vector<RankFacts>& ranks) {
  std::map<KeptFacts, int> counts;
  for (const RankFacts& facts : ranks) ++counts[kept_facts(facts)];
  json list = json::array();
  for (const auto& [facts, count] : counts) {
    KeptFacts entry = facts;
    entry.ranks = count;
    JsonObject object{list.emplace_back(json::object())};
    put_record(object, entry);
  }
  return list;
}

void get_ranks(json& list, RunData& run, int minor) {
  for (json& entry : list) {
    KeptFacts kept;
    get_record(JsonObject{entry}, kept, minor);
    RankFacts facts{.host = kept.host, .node = kept.node};
    if (!kept.cpu_model.empty()) facts.text["cpu_model"] = kept.cpu_model;
    if (!kept.gpu_name.empty()) facts.text["gpu_name"] = kept.gpu_name;
    if (kept.cores) facts.number["cores"] = *kept.cores;
    const auto left = static_cast<std::size_t>(run.ranks) - run.rank_facts.size();
    require(kept.ranks >= 1 && std::cmp_less_equal(kept.ranks, left),
            "more ranks have facts than the run has");
    run.rank_facts.insert(run.rank_facts.end(), static_cast<std::size_t>(kept.ranks), facts);
  }
}

RunSummary from_json(json& object, int minor) {
  RunSummary summary;
  RunData& run = summary.run;
  get_record(JsonObject{object}, run, minor, run_identity);
  require(run.ranks >= 1 && run.nodes >= 1, "the run has no ranks or nodes");
  get_ranks(object.at("ranks_of_nodes"), run, minor);
  std::vector<json*> points;
  for (json& point : object.at("points")) points.push_back(&point);
  std::ranges::stable_sort(points, {},
                           [](json* at) { return JsonObject{*at}.get<std::int64_t>("index"); });
  for (json* const from : points) {
    PointData& point = run.points.emplace_back();
    get_record(JsonObject{*from}, point, minor, point_facts);
    validate(point);
    get_record(JsonObject{*from}, summary.figures.emplace_back(), minor);
  }
  return summary;
}

constexpr std::string_view end_mark = "\nisoscale summary, version 1\n";
constexpr std::size_t end_bytes = 256;

/// Returns the bytes that follow the summary `text` at the end of a file: its digest and its
/// length.
std::string end_of(std::string_view text) {
  base::Blake2b digest;
  digest.add(text);
  return digest_text(end_mark, digest, text.size(), end_bytes);
}

/// Reads exactly `length` bytes; absent if the file has fewer there.
std::optional<std::string> bytes_at(const Descriptor& file, std::uint64_t at, std::size_t length) {
  std::string bytes(length, '\0');
  return read_at(file, at, bytes).size() == length ? std::optional{std::move(bytes)} : std::nullopt;
}

/// Returns the JSON at the end of a file; absent if it is missing, above 64 MiB or damaged.
std::optional<std::string> stored_text(const Descriptor& file) {
  constexpr std::uint64_t longest = std::uint64_t{64} << 20U;
  const std::uint64_t size = size_of(file);
  if (size < end_bytes) return std::nullopt;
  const std::optional<std::string> end = bytes_at(file, size - end_bytes, end_bytes);
  constexpr std::string_view before_number = "\nbytes ";
  if (!end || !end->starts_with(end_mark)) return std::nullopt;
  const std::size_t number = end->find(before_number);
  if (number == std::string::npos) return std::nullopt;
  std::uint64_t bytes = 0;
  std::from_chars(end->data() + number + before_number.size(), end->data() + end->size(), bytes);
  if (bytes > std::min(size - end_bytes, longest)) return std::nullopt;
  std::optional<std::string> text =
      bytes_at(file, size - end_bytes - bytes, static_cast<std::size_t>(bytes));
  return text && end_of(*text) == *end ? text : std::nullopt;
}

/// Opens a file to read it; O_NONBLOCK keeps open() from waiting if it is a pipe.
Descriptor open_to_read(const fs::path& path) {
  return Descriptor{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
}

bool has_parts(const RunSummary& summary, const fs::path& path) {
  const fs::path folder = resolved_output(path).parent_path();
  std::error_code ignored;
  return std::ranges::all_of(summary.figures, [&](const PointFigures& at) {
    return !at.part_file || (at.part_file->find('/') == std::string::npos &&
                             fs::is_regular_file(folder / *at.part_file, ignored));
  });
}

}  // namespace

void add_point(RunSummary& summary, const PointData& point, std::optional<std::string> part_file) {
  const auto time = step_time(point);
  summary.figures.push_back({.step_time = time ? std::optional{time->median} : std::nullopt,
                             .counted = time ? time->samples : 0,
                             .steps = point.step_times.size(),
                             .rows = point.rows.size(),
                             .part_file = std::move(part_file)});
  copy_fields(point, summary.run.points.emplace_back(), point_facts);
}

RunSummary summary_of(const RunData& run) {
  RunSummary summary;
  RunData& kept = summary.run;
  copy_fields(run, kept, run_identity);
  kept.rank_facts = run.rank_facts;
  for (const PointData& point : run.points) add_point(summary, point);
  return summary;
}

std::string summary_text(const RunSummary& summary) {
  const RunData& run = summary.run;
  json object{{"schema_version", fmt::format("{}.{}", schema_major, schema_minor)},
              {"ranks_of_nodes", to_json(run.rank_facts)},
              {"points", json::array()}};
  JsonObject fields{object};
  put_record(fields, run, 0, run_identity);
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    JsonObject point{object["points"].emplace_back(json::object())};
    put_record(point, run.points[i], 0, point_facts);
    put_record(point, summary.figures[i]);
  }
  const std::string text = object.dump();
  return text + end_of(text);
}

std::optional<RunSummary> read_summary(const fs::path& path) {
  try {
    const Descriptor file = open_to_read(path);
    const std::optional<std::string> text = file ? stored_text(file) : std::nullopt;
    if (!text) return std::nullopt;
    json object = json::parse(*text);
    const auto version = object.at("schema_version").get<std::string>();
    const std::string major = fmt::format("{}.", schema_major);
    if (!version.starts_with(major)) return std::nullopt;
    const auto minor = base::number_in<int>(std::string_view{version}.substr(major.size()));
    if (!minor) return std::nullopt;
    RunSummary summary = from_json(object, *minor);
    return has_parts(summary, path) ? std::optional{std::move(summary)} : std::nullopt;
  } catch (const json::exception&) {  // the summary does not fit this schema
    return std::nullopt;
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

}  // namespace isoscale::results
