// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/identity.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "workloads/registry.hpp"

namespace isoscale::analysis {
namespace {

using results::PointData;

using Texts = std::map<std::string, std::string>;

/// The options that scaling itself changes. A point may be skipped before their values are known.
constexpr std::array scaled_options =
    std::to_array<std::string_view>({"batch", "microbatch", "microbatches", "experts"});

bool is_scaled(const std::string& option) {
  return std::ranges::find(scaled_options, option) != scaled_options.end();
}

/// Returns the integer in `text` divided by `by`. Returns `text` itself if it is not a multiple of
/// `by`.
std::string divided(const std::string& text, int by) {
  const std::optional<std::int64_t> number = base::number_in<std::int64_t>(text);
  return number && *number % by == 0 ? std::to_string(*number / by) : text;
}

/// Returns the options that are the same at all rank counts of a curve. Strong scaling keeps the
/// global batch and changes the number and size of microbatches. Weak scaling keeps the
/// microbatches of a replica and the experts of a rank; the batch grows with dp, and the total
/// number of experts with ep.
Texts shared_options(const PointData& point) {
  Texts options = point.options;
  if (point.status == results::PointStatus::skipped) {
    std::erase_if(options, [](const auto& option) { return is_scaled(option.first); });
  } else if (point.scaling == "weak") {
    options.erase("batch");
    const auto experts = options.find("experts");
    if (experts != options.end()) experts->second = divided(experts->second, point.mesh.ep);
  } else {
    options.erase("microbatch");
    options.erase("microbatches");
  }
  return options;
}

/// Returns the sizes of the model that one rank holds. Weak scaling multiplies heads and widths by
/// tp, layers by pp, and the sequence by cp.
Texts numbers_on_one_rank(const PointData& point) {
  if (point.status == results::PointStatus::skipped) return {};
  Texts numbers = point.model_shape;
  if (point.scaling != "weak") return numbers;
  for (auto& [name, number] : numbers) {
    if (name == "heads" || name == "kv_heads" || name == "ffn" || name == "vocabulary") {
      number = divided(number, point.mesh.tp);
    } else if (name == "layers") {
      number = divided(number, point.mesh.pp);
    } else if (name == "sequence") {
      number = divided(number, point.mesh.cp);
    }
  }
  return numbers;
}

auto family(const Experiment& of) {
  return std::tie(of.workload, of.model, of.dtype, of.scaling, of.placement);
}

/// Returns the names of the entries whose values differ between experiments of one family.
std::set<std::string> telling(std::span<const Experiment* const> family, Texts Experiment::*texts) {
  std::map<std::string_view, std::set<std::string_view>> values;
  for (const Experiment* const of : family) {
    for (const auto& [name, value] : of->*texts) values[name].insert(value);
  }
  std::set<std::string> names;
  for (const auto& [name, seen] : values) {
    if (seen.size() > 1) names.emplace(name);
  }
  return names;
}

constexpr std::array setting_maps{&Experiment::options, &Experiment::numbers,
                                  &Experiment::settings};

constexpr std::array communication_and_threads = std::to_array<std::string_view>(
    {"NCCL_", "UCX_", "OMPI_MCA_", "I_MPI_", "MPICH_", "MV2_", "FI_", "CUDA_", "CUBLAS_",
     "NVIDIA_TF32_", "OMP_", "OPENBLAS_", "GOTO_", "MKL_", "BLIS_", "GOMP_", "KMP_"});

/// Environment variables that only say which rank ran where or what was logged, so they do not
/// affect times. OMPI_MCA_rmaps_base_oversubscribe is among them because a label of the point
/// already tells if ranks shared cores.
constexpr std::array of_one_job = std::to_array<std::string_view>(
    {"NCCL_DEBUG", "NCCL_HOSTID", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
     "CUDA_MPS_PIPE_DIRECTORY", "OMPI_MCA_rmaps_base_oversubscribe"});

std::optional<toml::table> parsed(const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return toml::parse(text);
  } catch (const toml::parse_error&) {
    return std::nullopt;  // another program may have written the file; its other parts are usable
  }
}

/// Turns Open MPI's mapping "ppr:8:node" into "ppr:node". The number of ranks per node is compared
/// for each point, so launches that differ only in it have the same mapping.
std::string without_count(const std::string& mapping) {
  constexpr std::string_view per_resource = "ppr:";
  const std::size_t end = mapping.find(':', per_resource.size());
  if (!mapping.starts_with(per_resource) || end == std::string::npos) return mapping;
  return "ppr" + mapping.substr(end);
}

/// Returns all values of a fact over the ranks of a launch, as "A + B".
std::string values_of(const results::RunData& run, const std::string& fact) {
  std::set<std::string> values;
  for (const results::RankFacts& facts : run.rank_facts) {
    const auto found = facts.text.find(fact);
    if (found != facts.text.end()) values.insert(found->second);
  }
  return fmt::format("{}", fmt::join(values, " + "));
}

/// Returns the recorded environment variables that bear on times, with their values.
Texts environment_of(const results::RunData& run) {
  Texts settings;
  for (const auto& [name, value] : run.environment) {
    if (!bears_on_times(name)) continue;
    settings[name] = name == "OMPI_MCA_rmaps_base_mapping_policy" ? without_count(value) : value;
  }
  return settings;
}

/// True if file `a` holds more of the run than `b`. The number of ok points counts most: a copy
/// made before the run was resumed has fewer, but may be marked complete.
bool holds_more(const FileContent& a, const FileContent& b) {
  const auto content = [](const FileContent& of) {
    return std::tie(of.ok_points, of.complete, of.points, of.ended);
  };
  return content(a) > content(b);
}

std::string said_of(const FileContent& left_out, const FileContent& kept) {
  if (left_out.file == kept.file) {
    return fmt::format("{} was given more than once; it counts once", kept.file);
  }
  return fmt::format("{} holds run {} as {} does; it counts once, as in the latter", left_out.file,
                     kept.id, kept.file);
}

}  // namespace

Experiment experiment_of(const PointData& point) {
  return {.workload = point.workload,
          .model = point.model,
          .dtype = point.dtype,
          .scaling = point.scaling,
          .placement = point.placement,
          .options = shared_options(point),
          .numbers = numbers_on_one_rank(point)};
}

std::string option_of(const PointData& point, const std::string& key) {
  const auto found = point.options.find(key);
  return found == point.options.end() ? "" : found->second;
}

std::vector<UnlikeField> unlike_texts(std::string_view kind, const Texts& here, const Texts& there,
                                      std::string_view absent) {
  const auto value = [absent](const Texts& texts, const std::string& name) {
    const auto found = texts.find(name);
    return found == texts.end() ? std::string{absent} : found->second;
  };
  Texts all = here;
  all.insert(there.begin(), there.end());
  std::vector<UnlikeField> fields;
  for (const auto& [name, unused] : all) {
    UnlikeField at{std::string{kind} + name, value(here, name), value(there, name)};
    if (at.here != at.there) fields.push_back(std::move(at));
  }
  return fields;
}

Texts with_defaults(std::string_view workload, Texts options) {
  const auto known = std::ranges::find(workloads::registry(), workload, &workloads::Workload::name);
  if (known == workloads::registry().end() || options.empty()) return options;
  for (const workloads::OptionSpec& spec : known->options) {
    if (!spec.default_value.empty()) options.try_emplace(std::string{spec.key}, spec.default_value);
  }
  return options;
}

std::vector<UnlikeField> unlike_fields(const Experiment& here, const Experiment& there) {
  std::vector<UnlikeField> fields;
  const auto add = [&](std::string name, std::string Experiment::*text) {
    if (here.*text != there.*text) fields.push_back({std::move(name), here.*text, there.*text});
  };
  const auto add_texts = [&](std::string_view kind, const Texts& a, const Texts& b) {
    std::ranges::move(unlike_texts(kind, a, b), std::back_inserter(fields));
  };
  add("workload", &Experiment::workload);
  add("model", &Experiment::model);
  if (!here.numbers.empty() && !there.numbers.empty()) {
    add_texts("model ", here.numbers, there.numbers);
  }
  add("dtype", &Experiment::dtype);
  add("scaling", &Experiment::scaling);
  add("placement", &Experiment::placement);
  Texts options = here.options, others = there.options;
  std::erase_if(options, [&](const auto& at) {
    return is_scaled(at.first) && !there.options.contains(at.first);
  });
  std::erase_if(others, [&](const auto& at) {
    return is_scaled(at.first) && !here.options.contains(at.first);
  });
  add_texts("option ", with_defaults(here.workload, std::move(options)),
            with_defaults(there.workload, std::move(others)));
  add_texts("setting ", here.settings, there.settings);
  return fields;
}

std::string text_of(const std::vector<UnlikeField>& fields) {
  std::string text;
  for (const UnlikeField& at : fields) {
    text += fmt::format("{}{}: {} here, {} there", text.empty() ? "" : "; ", at.name, at.here,
                        at.there);
  }
  return text;
}

bool are_alike(const Experiment& a, const Experiment& b) { return unlike_fields(a, b).empty(); }

std::string fingerprint(const Experiment& experiment, std::string_view device) {
  // A zero byte ends each text, so that "ab", "c" and "a", "bc" have different hashes.
  std::string texts;
  const auto add = [&texts](std::string_view text) { texts.append(text).push_back('\0'); };
  for (const std::string_view text :
       {device, std::string_view{experiment.workload}, std::string_view{experiment.model},
        std::string_view{experiment.dtype}, std::string_view{experiment.scaling},
        std::string_view{experiment.placement}}) {
    add(text);
  }
  for (const auto map : setting_maps) {
    add(std::to_string((experiment.*map).size()));
    for (const auto& [name, value] : experiment.*map) {
      add(name);
      add(value);
    }
  }
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : texts) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return fmt::format("{:016x}", hash);
}

std::vector<std::string> titles(const std::vector<Experiment>& experiments) {
  std::map<decltype(family(experiments.front())), std::vector<const Experiment*>> families;
  for (const Experiment& of : experiments) families[family(of)].push_back(&of);
  std::vector<std::string> result(experiments.size());
  for (const auto& [unused, members] : families) {
    std::array<std::set<std::string>, setting_maps.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = telling(members, setting_maps[i]);
    for (const Experiment* const of : members) {
      std::string text = fmt::format("{}, {}, {}, {} scaling, {}", of->workload, of->model,
                                     of->dtype, of->scaling, of->placement);
      for (std::size_t i = 0; i < names.size(); ++i) {
        for (const std::string& name : names[i]) {
          const auto found = (of->*setting_maps[i]).find(name);
          if (found != (of->*setting_maps[i]).end()) {
            text += fmt::format(", {}={}", name, found->second);
          }
        }
      }
      result[static_cast<std::size_t>(of - experiments.data())] = std::move(text);
    }
  }
  return result;
}

std::map<std::string, std::string> settings_of(const results::RunData& run) {
  std::map<std::string, std::string> settings;
  if (const std::optional<toml::table> config = parsed(run.config_toml)) {
    const bool graph = (*config)["graph"].value_or(false);
    settings = {
        {"fill", (*config)["fill"].value_or(std::string{"idle"})},
        {"graph", graph ? "on" : "off"},
        {"gemm_algorithms", (*config)["gemm_algorithms"].value_or(std::string{"chosen"})},
        {"blas_threads", std::to_string((*config)["blas_threads"].value_or(std::int64_t{1}))},
        {"host_streams", (*config)["host_streams"].value_or(std::string{"auto"})}};
  }
  const bool played =
      std::ranges::find(run.points, "on", &results::PointData::graph) != run.points.end();
  if (played) settings["graph"] = "on";
  return settings;
}

bool bears_on_times(std::string_view variable) {
  return std::ranges::any_of(communication_and_threads,
                             [&](std::string_view begin) { return variable.starts_with(begin); }) &&
         std::ranges::find(of_one_job, variable) == of_one_job.end();
}

Machine machine_of(const results::RunData& run) {
  std::string device = run.device;
  if (!run.device_detail.empty()) device += ", " + run.device_detail;
  std::string program = run.isoscale_version;
  for (const std::string& part : {run.git_hash, run.build_type}) {
    if (!part.empty()) program += ", " + part;
  }
  Machine machine{{"CPU", values_of(run, "cpu_model")},
                  {"GPU", values_of(run, "gpu_name")},
                  {"GPU driver", values_of(run, "gpu_driver")},
                  {"CUDA driver", values_of(run, "cuda_driver")},
                  {"CUDA runtime", values_of(run, "cuda_runtime")},
                  {"cuBLAS", values_of(run, "cublas")},
                  {"NCCL", values_of(run, "nccl")},
                  {"device", device},
                  {"MPI", run.mpi_library.substr(0, run.mpi_library.find(','))},
                  {"Isoscale", program}};
  std::erase_if(machine, [](const auto& entry) { return entry.second.empty(); });
  machine.merge(environment_of(run));
  return machine;
}

std::vector<UnlikeField> unlike_machines(const Machine& here, const Machine& there) {
  std::vector<UnlikeField> fields = unlike_texts("", here, there, "unset");
  for (UnlikeField& at : fields) {
    if (bears_on_times(at.name)) continue;
    if (!here.contains(at.name)) at.here = "unknown";
    if (!there.contains(at.name)) at.there = "unknown";
  }
  return fields;
}

std::vector<std::size_t> distinct(const std::vector<FileContent>& files,
                                  std::vector<std::string>& warnings) {
  std::vector<std::size_t> kept;
  std::map<std::string_view, std::size_t> place;  // index in `kept`, by run
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto known = files[i].id.empty() ? place.end() : place.find(files[i].id);
    if (known == place.end()) {
      if (!files[i].id.empty()) place[files[i].id] = kept.size();
      kept.push_back(i);
      continue;
    }
    std::size_t& best = kept[known->second];
    std::size_t other = i;
    if (holds_more(files[i], files[best])) std::swap(other, best);
    warnings.push_back(said_of(files[other], files[best]));
  }
  return kept;
}

RunFiles without_copies(RunFiles given) {
  std::vector<FileContent> contents;
  for (std::size_t i = 0; i < given.runs.size(); ++i) {
    const results::RunData& run = given.runs[i];
    const auto ok =
        std::ranges::count(run.points, results::PointStatus::ok, &results::PointData::status);
    contents.push_back({.id = run.id,
                        .file = given.files[i],
                        .ok_points = static_cast<std::size_t>(ok),
                        .points = run.points.size(),
                        .complete = run.complete,
                        .ended = run.ended});
  }
  RunFiles kept{.runs = {}, .files = {}, .warnings = std::move(given.warnings)};
  for (const std::size_t i : distinct(contents, kept.warnings)) {
    kept.runs.push_back(std::move(given.runs[i]));
    kept.files.push_back(std::move(given.files[i]));
  }
  return kept;
}

}  // namespace isoscale::analysis
