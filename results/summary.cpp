// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/summary.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/blake2b.hpp"
#include "base/error.hpp"
#include "results/hdf5.hpp"
#include "results/layout.hpp"
#include "statistics/estimate.hpp"

namespace isoscale::results {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The visitor of layout.hpp that writes to a JSON object.
class PutJson {
 public:
  explicit PutJson(json& into) : into_(into) {}

  // The same replacement of damaged UTF-8 as in the HDF5 data keeps both equal.
  void attribute(const char* name, const std::string& value) {
    into_[name] = hdf5::valid_utf8(value);
  }
  void attribute(const char* name, int value) { into_[name] = value; }
  void attribute(const char* name, double value) { into_[name] = value; }
  void attribute(const char* name, PointStatus value) { into_[name] = results::name(value); }
  void attribute(const char* name, const std::optional<bool>& value) {
    if (value) into_[name] = *value;
  }
  void pairs(const char* name, const std::map<std::string, std::string>& pairs) {
    json& object = into_[name] = json::object();
    for (const auto& [key, value] : pairs) object[hdf5::valid_utf8(key)] = hdf5::valid_utf8(value);
  }
  void column(const char* name, const std::vector<std::string>& texts,
              const hdf5::About& /*about*/) {
    json& list = into_[name] = json::array();
    for (const std::string& text : texts) list.push_back(hdf5::valid_utf8(text));
  }

 private:
  json& into_;  ///< not owned
};

template <class Number>
Number whole_number(const json& value) {
  if (!value.is_number_integer()) throw base::Error("a number is not whole");
  const auto number = value.get<std::int64_t>();
  if (!std::in_range<Number>(number)) throw base::Error("a number is out of range");
  return static_cast<Number>(number);
}

/// The visitor of layout.hpp that reads from a JSON object. Throws json::exception or base::Error
/// for fields that are missing or of another type.
class GetJson {
 public:
  explicit GetJson(const json& from) : from_(from) {}

  void attribute(const char* name, std::string& value) { from_.at(name).get_to(value); }
  void attribute(const char* name, int& value) { value = whole_number<int>(from_.at(name)); }
  void attribute(const char* name, double& value) {  // JSON has neither NaN nor infinity
    const json& stored = from_.at(name);
    value = stored.is_null() ? std::numeric_limits<double>::quiet_NaN() : stored.get<double>();
  }
  void attribute(const char* name, PointStatus& value) {
    const std::vector<std::string> names = status_names();
    const auto found = std::ranges::find(names, from_.at(name).get<std::string>());
    if (found == names.end()) throw base::Error("a status is unknown");
    value = static_cast<PointStatus>(found - names.begin());
  }
  void attribute(const char* name, std::optional<bool>& value) {
    if (from_.contains(name)) value = from_.at(name).get<bool>();
  }
  void pairs(const char* name, std::map<std::string, std::string>& pairs) {
    from_.at(name).get_to(pairs);
  }
  void column(const char* name, std::vector<std::string>& texts, const hdf5::About& /*about*/) {
    from_.at(name).get_to(texts);
  }

 private:
  const json& from_;  ///< not owned
};

/// The facts of a rank that a summary keeps; ranks with the same facts are stored as one entry and
/// their number.
using KeptFacts = std::tuple<std::string, int, std::string, std::string, std::optional<double>>;

KeptFacts kept_facts(const RankFacts& facts) {
  const auto text = [&](const char* key) {
    const auto found = facts.text.find(key);
    return found == facts.text.end() ? std::string{} : found->second;
  };
  const auto cores = facts.number.find("cores");
  const bool is_known = cores != facts.number.end() && std::isfinite(cores->second);
  return {facts.host, facts.node, text("cpu_model"), text("gpu_name"),
          is_known ? std::optional{cores->second} : std::nullopt};
}

json to_json(const std::vector<RankFacts>& ranks) {
  std::map<KeptFacts, int> counts;
  for (const RankFacts& facts : ranks) ++counts[kept_facts(facts)];
  json list = json::array();
  for (const auto& [facts, count] : counts) {
    const auto& [host, node, cpu, gpu, cores] = facts;
    json& entry = list.emplace_back(json{{"node", node}, {"ranks", count}});
    PutJson put{entry};
    put.attribute("host", host);
    put.attribute("cpu_model", cpu);
    put.attribute("gpu_name", gpu);
    if (cores) entry["cores"] = *cores;
  }
  return list;
}

void get_ranks(const json& list, RunData& run) {
  for (const json& entry : list) {
    GetJson get{entry};
    RankFacts facts;
    std::string cpu, gpu;
    int ranks = 0;
    get.attribute("node", facts.node);
    get.attribute("ranks", ranks);
    get.attribute("host", facts.host);
    get.attribute("cpu_model", cpu);
    get.attribute("gpu_name", gpu);
    if (!cpu.empty()) facts.text["cpu_model"] = cpu;
    if (!gpu.empty()) facts.text["gpu_name"] = gpu;
    if (entry.contains("cores")) get.attribute("cores", facts.number["cores"]);
    const auto left = static_cast<std::size_t>(run.ranks) - run.rank_facts.size();
    if (ranks < 1 || static_cast<std::size_t>(ranks) > left) {
      throw base::Error("more ranks have facts than the run has");
    }
    run.rank_facts.insert(run.rank_facts.end(), static_cast<std::size_t>(ranks), facts);
  }
}

json to_json(const PointData& point, const PointFigures& figures) {
  json object{{"counted_steps", figures.counted}, {"steps", figures.steps}, {"rows", figures.rows}};
  PutJson put{object};
  visit_point_facts(put, point);
  if (figures.step_time) object["step_time"] = *figures.step_time;
  if (!figures.part_file.empty()) put.attribute("part_file", figures.part_file);
  return object;
}

void get_point(const json& object, RunSummary& into) {
  GetJson get{object};
  PointData& point = into.run.points.emplace_back();
  visit_point_facts(get, point);
  validate(point);
  PointFigures& figures = into.figures.emplace_back();
  figures.counted = whole_number<std::size_t>(object.at("counted_steps"));
  figures.steps = whole_number<std::size_t>(object.at("steps"));
  figures.rows = whole_number<std::size_t>(object.at("rows"));
  if (object.contains("step_time")) get.attribute("step_time", figures.step_time.emplace());
  if (object.contains("part_file")) get.attribute("part_file", figures.part_file);
}

RunSummary from_json(const json& object) {
  RunSummary summary;
  RunData& run = summary.run;
  GetJson get{object};
  visit_run_identity(get, run);
  run.complete = object.at("status").get<std::string>() == "complete";
  if (run.ranks < 1 || run.nodes < 1) throw base::Error("the run has no ranks or nodes");
  get_ranks(object.at("ranks_of_nodes"), run);
  std::vector<const json*> points;
  for (const json& point : object.at("points")) points.push_back(&point);
  std::ranges::stable_sort(points, {},
                           [](const json* at) { return whole_number<int>(at->at("index")); });
  for (const json* const point : points) get_point(*point, summary);
  return summary;
}

constexpr std::string_view end_mark = "\nisoscale summary, version 1\n";
constexpr std::size_t end_bytes = 256;

/// Returns the last bytes of a file with the summary `text`.
std::string end_of(std::string_view text) {
  base::Blake2b digest;
  digest.add(text);
  std::string end =
      fmt::format("{}digest blake2b-256 {}\nbytes {}\n", end_mark, digest.finish(), text.size());
  end.resize(end_bytes - 1, ' ');
  return end + '\n';
}

/// Reads exactly `length` bytes; absent where the file has not as many there.
std::optional<std::string> bytes_at(const Descriptor& file, std::uint64_t at, std::size_t length) {
  std::string bytes(length, '\0');
  for (std::size_t done = 0; done < length;) {
    const ssize_t got =
        pread(file.get(), bytes.data() + done, length - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

/// Returns the JSON at the end of a file if its digest is right.
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

/// Opens a file to read it; a pipe does not block.
Descriptor open_to_read(const fs::path& path) {
  return Descriptor{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
}

bool has_parts(const RunSummary& summary, const fs::path& path) {
  const fs::path folder = resolved_output(path).parent_path();
  std::error_code ignored;
  return std::ranges::all_of(summary.figures, [&](const PointFigures& at) {
    return at.part_file.empty() || (at.part_file.find('/') == std::string::npos &&
                                    fs::is_regular_file(folder / at.part_file, ignored));
  });
}

}  // namespace

void add_point(RunSummary& summary, const PointData& point, double confidence,
               std::string part_file) {
  const auto time = statistics::estimate(untraced_times(point), confidence);
  summary.figures.push_back({.step_time = time ? std::optional{time->median} : std::nullopt,
                             .counted = time ? time->samples : 0,
                             .steps = point.step_times.size(),
                             .rows = point.rows.size(),
                             .part_file = std::move(part_file)});
  PointData& kept = summary.run.points.emplace_back();
  kept.index = point.index;
  kept.workload = point.workload;
  kept.model = point.model;
  kept.dtype = point.dtype;
  kept.mesh = point.mesh;
  kept.ranks = point.ranks;
  kept.nodes = point.nodes;
  kept.scaling = point.scaling;
  kept.placement = point.placement;
  kept.options = point.options;
  kept.model_shape = point.model_shape;
  kept.labels = point.labels;
  kept.status = point.status;
  kept.verified = point.verified;
  kept.throughput_unit = point.throughput_unit;
  kept.work_per_step = point.work_per_step;
}

RunSummary summary_of(const RunData& run, Confidences& confidences) {
  RunSummary summary;
  RunData& kept = summary.run;
  kept.id = run.id;
  kept.created = run.created;
  kept.ended = run.ended;
  kept.isoscale_version = run.isoscale_version;
  kept.git_hash = run.git_hash;
  kept.device = run.device;
  kept.ranks = run.ranks;
  kept.nodes = run.nodes;
  kept.complete = run.complete;
  kept.rank_facts = run.rank_facts;
  for (const PointData& point : run.points) add_point(summary, point, confidences.of(point));
  return summary;
}

std::string summary_text(const RunSummary& summary) {
  const RunData& run = summary.run;
  json object{{"schema_version", fmt::format("{}.{}", schema_major, schema_minor)},
              {"status", run.complete ? "complete" : "partial"},
              {"ranks_of_nodes", to_json(run.rank_facts)},
              {"points", json::array()}};
  PutJson put{object};
  visit_run_identity(put, run);
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    object["points"].push_back(to_json(run.points[i], summary.figures[i]));
  }
  const std::string text = object.dump();
  return text + end_of(text);
}

bool has_broken_summary(const fs::path& path, std::uint64_t end_of_data) {
  const Descriptor file = open_to_read(path);
  return file && bytes_at(file, end_of_data, 1) == "{" && !stored_text(file);
}

std::optional<RunSummary> read_summary(const fs::path& path) {
  try {
    const Descriptor file = open_to_read(path);
    const std::optional<std::string> text = file ? stored_text(file) : std::nullopt;
    if (!text) return std::nullopt;
    const json object = json::parse(*text);
    const auto version = object.at("schema_version").get<std::string>();
    if (!version.starts_with(fmt::format("{}.", schema_major))) return std::nullopt;
    RunSummary summary = from_json(object);
    return has_parts(summary, path) ? std::optional{std::move(summary)} : std::nullopt;
  } catch (const json::exception&) {  // not the summary of this schema
    return std::nullopt;
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

}  // namespace isoscale::results
