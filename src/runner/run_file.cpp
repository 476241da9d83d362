// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/run_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>
#include <system_error>
#include <utility>

#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "base/warn.hpp"
#include "machine/job_environment.hpp"
#include "results/hdf5/publish_and_lock_files.hpp"
#include "results/reader/reader.hpp"
#include "results/records/records_as_json_and_cbor.hpp"
#include "results/records/run_and_calibration_fields.hpp"

namespace isoscale::runner {

namespace {

namespace fs = std::filesystem;
using results::PointData;

/// Returns an unused path in a directory: `name`, with a number if this file exists already.
fs::path free_name(const fs::path& directory, const fs::path& name) {
  fs::path path = directory / name;
  std::error_code error;
  for (int number = 2; fs::exists(fs::symlink_status(path, error)); ++number) {
    path =
        directory / fmt::format("{}-{}{}", name.stem().string(), number, name.extension().string());
  }
  return path;
}

/// Returns the points in a file; none if it cannot be read or belongs to a run with another id.
std::vector<results::PointData> points_of(const fs::path& path, const std::string& id) {
  try {
    results::RunData run = results::read_run(path);
    if (run.id == id) return std::move(run.points);
  } catch (const base::Error&) {  // an unreadable file gives no points
  }
  return {};
}

}  // namespace

std::filesystem::path output_path(const settings::RunConfig& config, const std::string& host) {
  if (!config.output.empty()) return config.output;
  std::string workloads;
  std::set<std::string> named;
  for (const settings::Experiment& experiment : config.experiments) {
    if (!named.insert(experiment.workload).second) continue;
    workloads += (workloads.empty() ? "" : "-") + experiment.workload;
  }
  std::string time = base::utc_now(), where = host;
  std::erase(time, ':');
  std::erase(time, '-');
  std::replace_if(
      where.begin(), where.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-'; }, '_');
  return fmt::format("isoscale-{}-{}-{}.h5", workloads, where, time);
}

results::RankFacts rank_facts(int rank, int node, const machine::MachineFacts& machine,
                              const executor::Description& device) {
  results::RankFacts facts{.rank = rank, .host = machine.host, .node = node};
  const auto text = [&](const char* key, const std::optional<std::string>& value) {
    if (value) facts.text[key] = *value;
  };
  const auto number = [&](const char* key, const auto& value) {
    if (value) facts.number[key] = static_cast<double>(*value);
  };
  text("cpu_model", machine.cpu_model);
  text("os", machine.os);
  text("device", device.detail);
  text("mpi_library", comm::Environment::library_version());
  if (!machine.bound_cpus.empty()) {
    facts.text["bound_cpus"] = fmt::format("{}", fmt::join(machine.bound_cpus, ","));
    facts.number["bound_cores"] = static_cast<double>(machine.bound_core_ids.size());
  }
  // The quota is stored as text for people, and as a number for rules that judge it.
  if (machine.cpu_quota) facts.text["cpu_quota"] = fmt::format("{:.1f} CPUs", *machine.cpu_quota);
  number("cpu_quota", machine.cpu_quota);
  number("sockets", machine.sockets);
  number("cores", machine.cores);
  number("numa_nodes", machine.numa_nodes);
  if (machine.memory_total) {
    facts.number["memory_total"] = static_cast<double>(machine.memory_total->value());
  }
  facts.text.insert(device.facts_text.begin(), device.facts_text.end());
  for (const auto& [key, value] : device.facts_number) {
    if (std::isfinite(value)) facts.number.emplace(key, value);
  }
  return facts;
}

std::vector<results::RankFacts> gather_rank_facts(const comm::Communicator& world,
                                                  const executor::Description& device,
                                                  std::span<const machine::MachineFacts> facts,
                                                  std::span<const int> node_of_rank) {
  using Rows = std::vector<results::RankFacts>;
  const auto me = static_cast<std::size_t>(world.rank());
  const Rows mine{rank_facts(world.rank(), node_of_rank[me], facts[me], device)};
  Rows all;
  for (const std::string& packed : world.gather(results::packed(mine))) {
    all.push_back(results::unpacked<Rows>(std::as_bytes(std::span{packed})).front());
  }
  return all;
}

results::RunData make_header(const settings::RunConfig& config, const plan::Site& site,
                             const executor::Description& device,
                             std::vector<results::RankFacts> facts) {
  const base::BuildInfo& build = base::build_info();
  results::RunData data;
  std::random_device random;
  data.id = fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
  data.created = base::utc_now();
  data.isoscale_version = build.version;
  data.git_hash = build.git_hash;
  data.compiler = build.compiler;
  data.build_type = build.build_type;
  data.device = device.name;
  data.device_detail = device.detail;
  data.mpi_library = comm::Environment::library_version();
  data.command_line = config.command_line;
  data.config_toml = settings::to_toml(config);
  data.ranks = site.ranks;
  data.nodes = 1 + *std::max_element(site.node_of_rank.begin(), site.node_of_rank.end());
  data.environment = machine::recorded_environment(machine::process_environment());
  data.rank_facts = std::move(facts);
  if (site.oversubscribed) {
    data.warnings.emplace_back(
        "ranks share cores: points labelled oversubscribed give no scaling result");
  }
  if (const auto warning = device.facts_text.find("blas_warning");
      warning != device.facts_text.end()) {
    data.warnings.push_back(warning->second);
  }
  if (data.build_type != "Release" && data.build_type != "RelWithDebInfo") {
    data.warnings.push_back(fmt::format(
        "this is a {} build: its own overhead is not that of a release", data.build_type));
  }
  return data;
}

PointData describe_point(const plan::PlannedPoint& point) {
  const workloads::Request& request = point.request;
  PointData data;
  data.index = point.index;
  data.workload = point.workload->name;
  data.model = plan::uses_model(point) ? request.model.name : "none";
  data.dtype = program::name(request.precision);
  data.mesh = request.mesh;
  data.ranks = point.ranks;
  // The ranks of a point in a run file exist, so the number of their nodes is known.
  data.nodes = point.nodes.value();
  data.scaling = workloads::name(point.experiment->scaling);
  data.placement = mesh::name(point.experiment->placement);
  data.options = workloads::all_options(point.workload->options, request.options);
  // The shape of the model is left out for points that have steps but use no model. Under weak
  // scaling the shape grows from point to point, so points that do the same work would seem to
  // differ if it were stored.
  if (point.workload->is_bench() || plan::uses_model(point)) {
    data.model_shape["gated_mlp"] = request.model.gated_mlp ? "yes" : "no";
    for (const auto& [key, size] : workloads::model_sizes()) {
      data.model_shape[key] = std::to_string(request.model.*size);
    }
  }
  data.seed = request.seed;
  data.throughput_unit = point.workload->throughput_unit;
  data.world_rank = point.world_ranks;
  if (!point.skip_reason.empty()) {
    data.status = results::PointStatus::skipped;
    data.reason = point.skip_reason;
    data.mesh = {};
    return data;
  }
  if (!point.workload->is_bench()) data.work_per_step = point.workload->work_per_step(request);
  return data;
}

fs::path fallback_of(const settings::RunConfig& config) {
  if (!config.fallback_dir.empty()) return config.fallback_dir;
  const char* const directory = std::getenv("TMPDIR");
  return directory != nullptr && *directory != '\0' ? directory : "/tmp";
}

RunFile::RunFile(results::RunWriter writer, fs::path path, results::RunData header,
                 fs::path fallback)
    : writer_(std::move(writer)),
      path_(std::move(path)),
      header_(std::move(header)),
      fallback_(std::move(fallback)) {
  header_.points.clear();
}

void RunFile::commit(const results::PointData& point) {
  change([&] { writer_.commit(point); });
}

void RunFile::finish(const results::RunData& last) {
  change([&] {
    results::RunData finished = last;
    if (!moved_.empty()) finished.warnings.push_back(moved_);
    writer_.finish(finished);
  });
}

void RunFile::change(const std::function<void()>& work) {
  try {
    return work();
  } catch (const base::Error& error) {
    if (!moved_.empty()) throw;
    try {
      move_to_fallback(error.what());
      return work();
    } catch (const base::Error& also) {
      throw base::Error(fmt::format("{}; the fallback {} cannot be written either: {}",
                                    error.what(), fallback_.string(), also.what()));
    }
  }
}

std::vector<results::PointData> RunFile::points_left() const {
  std::vector<results::PointData> points = points_of(path_, header_.id);
  if (!points.empty()) return points;
  // No points could be read by the name of the file. It may be gone, or be the name of another file
  // now. A large run also has part files with points beside the main file, and one of these may be
  // missing. This process still has the main file open and copies it through its open descriptor.
  const auto copy = writer_.copy_published(fallback_);
  return copy ? results::readable_points(copy->path(), header_.id,
                                         results::resolved_output(path_).parent_path())
              : points;
}

void RunFile::move_to_fallback(const std::string& why) {
  const fs::path next = free_name(fallback_, path_.filename());
  const std::vector<results::PointData> points = points_left();
  results::RunWriter writer{next, header_, settings::IfExists::refuse};
  for (const results::PointData& point : points) writer.commit(point);
  moved_ = fmt::format(
      "{} cannot be written any more ({}): the run continues in {}, which has {} of its points",
      path_.string(), why, next.string(), points.size());
  base::warn("isoscale: " + moved_);
  writer_ = std::move(writer);
  path_ = next;
}

}  // namespace isoscale::runner
