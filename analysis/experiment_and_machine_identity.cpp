// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/experiment_and_machine_identity.hpp"

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
#include "mesh/mesh.hpp"
#include "results/records/point_facts.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::analysis {
namespace {

using results::PointData;

using Texts = std::map<std::string, std::string>;

/// The options that scaling itself changes. Skipped points may lack their values, because a point
/// may be skipped before they are computed.
constexpr std::array scaled_options =
    std::to_array<std::string_view>({"batch", "microbatch", "microbatches", "experts"});

bool is_scaled(const std::string& option) {
  return std::ranges::find(scaled_options, option) != scaled_options.end();
}

/// Returns the integer in `text` divided by `by`. Returns `text` if it is not a multiple of `by`.
std::string divided(const std::string& text, int by) {
  const std::optional<std::int64_t> number = base::number_in<std::int64_t>(text);
  return number && *number % by == 0 ? std::to_string(*number / by) : text;
}

/// Returns the options that are the same at all rank counts of a curve. Strong scaling keeps the
/// global batch and changes microbatches. Weak scaling keeps the microbatches of each replica and
/// the experts on each rank: the batch grows with dp, and the total number of experts with ep.
Texts shared_options(const PointData& point) {
  Texts options = full_options(point);
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

/// Returns the sizes of the model, without the growth by weak scaling, which multiplies heads and
/// widths by tp, layers by pp, and the sequence by cp. Empty for skipped points.
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

/// A text that all points of a curve share. Experiments with equal texts form a family.
struct FamilyField {
  std::string_view name;
  std::string PointData::*of_point;
  std::string Experiment::*of_experiment;
};
constexpr auto family_fields =
    std::to_array<FamilyField>({{"workload", &PointData::workload, &Experiment::workload},
                                {"model", &PointData::model, &Experiment::model},
                                {"dtype", &PointData::dtype, &Experiment::dtype},
                                {"scaling", &PointData::scaling, &Experiment::scaling},
                                {"placement", &PointData::placement, &Experiment::placement}});

/// Returns the part of an experiment's title that is the same for all experiments of a family.
std::string family_title(const Experiment& of) {
  return fmt::format("{}, {}, {}, {} scaling, {}", of.workload, of.model, of.dtype, of.scaling,
                     of.placement);
}

/// Returns the names of the entries (options, sizes or settings: `texts` selects the map) whose
/// values differ between experiments of one family.
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

std::optional<toml::table> parsed(const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return toml::parse(text);
  } catch (const toml::parse_error&) {
    // Another program may have written the configuration; the rest of the run is usable.
    return std::nullopt;
  }
}

/// Turns Open MPI's mapping "ppr:8:node" into "ppr:node", since the number of ranks per node is
/// compared for each point instead.
std::string without_count(const std::string& mapping) {
  constexpr std::string_view per_resource = "ppr:";
  const std::size_t end = mapping.find(':', per_resource.size());
  if (!mapping.starts_with(per_resource) || end == std::string::npos) return mapping;
  return "ppr" + mapping.substr(end);
}

/// Returns the recorded environment variables that affect times, with their values.
Texts environment_of(const results::RunData& run) {
  Texts settings;
  for (const auto& [name, value] : run.environment) {
    if (!bears_on_times(name)) continue;
    settings[name] = name == "OMPI_MCA_rmaps_base_mapping_policy" ? without_count(value) : value;
  }
  return settings;
}

/// Returns the work of a step: "65536 tokens a step".
std::string work_text(const PointData& point) {
  std::string_view unit = point.throughput_unit;
  if (unit.ends_with("/s")) unit.remove_suffix(2);
  return fmt::format("{} {} a step", point.work_per_step, unit);
}

std::string joined_or_none(const std::vector<std::string>& texts) {
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

/// True if file `a` is a more complete copy of the run than `b`. The number of ok points counts
/// most: a copy made before the run was resumed has fewer, but may be marked complete.
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

/// Returns the defaults of a workload's options; empty for a workload that this version lacks.
Texts defaults_of(std::string_view workload) {
  const auto known = std::ranges::find(workloads::registry(), workload, &workloads::Workload::name);
  return known == workloads::registry().end() ? Texts{}
                                              : workloads::all_options(known->options, {});
}

}  // namespace

Experiment experiment_of(const PointData& point) {
  Experiment experiment;
  for (const FamilyField& field : family_fields) {
    experiment.*field.of_experiment = point.*field.of_point;
  }
  experiment.options = shared_options(point);
  experiment.numbers = numbers_on_one_rank(point);
  return experiment;
}

std::string option_of(const PointData& point, const std::string& key) {
  const auto found = point.options.find(key);
  return found == point.options.end() ? "" : found->second;
}

Texts full_options(const PointData& point) {
  if (point.options.empty()) return {};
  Texts options = defaults_of(point.workload);
  for (const auto& [key, value] : point.options) options[key] = value;
  return options;
}

std::vector<std::string> family_of(const PointData& point) {
  std::vector<std::string> family;
  for (const FamilyField& field : family_fields) family.push_back(point.*field.of_point);
  return family;
}

std::vector<UnlikeField> unlike_fields(const Experiment& here, const Experiment& there) {
  std::vector<UnlikeField> fields;
  const auto add_texts = [&](std::string_view kind, const Texts& a, const Texts& b) {
    std::ranges::move(unlike_texts(kind, a, b), std::back_inserter(fields));
  };
  for (const auto& [name, unused, text] : family_fields) {
    if (here.*text != there.*text) {
      fields.push_back({std::string{name}, here.*text, there.*text});
    }
    if (name == "model" && !here.numbers.empty() && !there.numbers.empty()) {
      add_texts("model ", here.numbers, there.numbers);
    }
  }
  const auto comparable = [](Texts mine, const Texts& theirs) {
    std::erase_if(
        mine, [&](const auto& at) { return is_scaled(at.first) && !theirs.contains(at.first); });
    return mine;
  };
  add_texts("option ", comparable(here.options, there.options),
            comparable(there.options, here.options));
  add_texts("setting ", here.settings, there.settings);
  return fields;
}

std::vector<UnlikeField> unlike_fields(const PointData& here, const PointData& there) {
  std::vector<UnlikeField> fields;
  const auto add = [&](const char* name, std::string of_here, std::string of_there) {
    if (of_here != of_there) fields.push_back({name, std::move(of_here), std::move(of_there)});
  };
  add("mesh", mesh::to_string(here.mesh), mesh::to_string(there.mesh));
  add("work", work_text(here), work_text(there));
  std::ranges::move(unlike_texts("option ", full_options(here), full_options(there)),
                    std::back_inserter(fields));
  add("labels", joined_or_none(results::unsound(here.labels)),
      joined_or_none(results::unsound(there.labels)));
  add("injected", joined_or_none(here.injections), joined_or_none(there.injections));
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
  add(device);
  for (const FamilyField& field : family_fields) add(experiment.*field.of_experiment);
  // Only options that differ from their defaults count, so new options do not change the hash.
  Texts options = experiment.options;
  const Texts defaults = defaults_of(experiment.workload);
  std::erase_if(options, [&](const auto& option) {
    const auto usual = defaults.find(option.first);
    return usual != defaults.end() && usual->second == option.second;
  });
  for (const Texts* const map :
       std::array<const Texts*, 3>{&options, &experiment.numbers, &experiment.settings}) {
    add(std::to_string(map->size()));
    for (const auto& [name, value] : *map) {
      add(name);
      add(value);
    }
  }
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : texts) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return fmt::format("{:016x}", hash);
}

std::vector<std::string> titles(const std::vector<Experiment>& experiments) {
  std::map<std::string, std::vector<const Experiment*>> families;
  for (const Experiment& of : experiments) families[family_title(of)].push_back(&of);
  std::vector<std::string> result(experiments.size());
  for (const auto& [title, members] : families) {
    std::array<std::set<std::string>, setting_maps.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = telling(members, setting_maps[i]);
    for (const Experiment* const of : members) {
      std::string text = title;
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

std::string values_of(const results::RunData& run, std::string_view fact) {
  std::set<std::string> values;
  for (const results::RankFacts& facts : run.rank_facts) {
    const auto found = facts.text.find(std::string{fact});
    if (found != facts.text.end()) values.insert(found->second);
  }
  return fmt::format("{}", fmt::join(values, " + "));
}

Machine machine_of(const results::RunData& run) {
  Machine machine = environment_of(run);
  for (const results::LaunchField& field : results::launch_fields) {
    const std::string& text = run.*field.text;
    if (field.machine.empty() || text.empty()) continue;
    std::string& entry = machine[std::string{field.machine}];
    // The name of the MPI library is followed by a comma and details of its build.
    const bool is_mpi = field.text == &results::RunData::mpi_library;
    entry += (entry.empty() ? "" : ", ") + (is_mpi ? text.substr(0, text.find(',')) : text);
  }
  for (const results::RankField& field : results::rank_fields) {
    std::string values = values_of(run, field.key);
    if (!field.machine.empty() && !values.empty()) {
      machine[std::string{field.machine}] = std::move(values);
    }
  }
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
  RunFiles kept{.warnings = std::move(given.warnings)};
  for (const std::size_t i : distinct(contents, kept.warnings)) {
    kept.runs.push_back(std::move(given.runs[i]));
    kept.files.push_back(std::move(given.files[i]));
  }
  return kept;
}

}  // namespace isoscale::analysis
