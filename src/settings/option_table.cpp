// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "settings/option_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "settings/option_values.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::settings {

namespace {

using mesh::Placement;
using workloads::Scaling;
using workloads::toml_string;

// The functions below that write a value return it as TOML, or "" if there is nothing to write.

/// True if the model equals the built-in model of the same name.
bool is_preset(const workloads::Model& model) {
  const auto has_name = [&](const workloads::Preset& preset) { return preset.name == model.name; };
  return std::ranges::any_of(workloads::model_presets(), has_name) &&
         workloads::load_model(model.name) == model;
}

std::string write_options(const workloads::Options& options) {
  std::string text;
  for (const auto& [key, value] : options) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key, toml_string(value));
  }
  return text.empty() ? "" : fmt::format("{{ {} }}", text);
}

constexpr auto write_model = [](const workloads::Model& model) {
  return is_preset(model) ? toml_string(model.name) : "";
};
constexpr auto write_name = [](auto value) { return toml_string(name(value)); };
constexpr auto write_number = [](auto value) { return std::to_string(value); };
constexpr auto write_if_set = [](std::optional<int> value) {
  return value.value_or(0) > 0 ? std::to_string(*value) : "";
};
constexpr auto write_text = [](const std::string& text) {
  return text.empty() ? "" : toml_string(text);
};
constexpr auto write_path = [](const std::filesystem::path& path) {
  return write_text(path.string());
};
constexpr auto not_written = [](const auto&) { return ""; };
constexpr auto write_time = [](const std::optional<units::Seconds>& time) {
  return time ? toml_string(fmt::format("{}s", time->value())) : "";
};

// Short names for the parameter types of the functions that the rows of the option table contain.
using In = std::string_view;
using E = Experiment;
using R = RunConfig;
using Q = workloads::Request;

constexpr int most_blas_threads = 4096;
constexpr int most_ranks = 1 << 24;  ///< limit for --max-ranks and --trace-ranks
constexpr int most_ranks_per_node = 4096;
constexpr int most_trace_steps = 1000;

/// Parses the name of one of the enumerators `choices`.
template <auto... choices>
constexpr auto any_of = [](In text) { return parse_choice(text, {choices...}); };
template <int least, int most>
constexpr auto within = [](In text) { return parse_int(text, least, most); };

template <class Owner, class Value>
Owner owner_of(Value Owner::*);

/// Returns the object that stores the option: the run, the experiment or the experiment's request.
template <class Owner, class SomeExperiment, class SomeRun>
auto& owner_in(SomeExperiment& experiment, SomeRun& run) {
  if constexpr (std::is_same_v<Owner, R>) {
    return run;
  } else if constexpr (std::is_same_v<Owner, E>) {
    return experiment;
  } else {
    return experiment.base;
  }
}

/// Completes the row of an option whose value is the data member `member`: sets the option's scope,
/// and the functions that parse a text into the member and write the member as TOML.
template <auto member, auto parse, auto write>
constexpr RunOption row(RunOption option) {
  using Owner = decltype(owner_of(member));
  option.scope = std::is_same_v<Owner, R> ? Scope::run : Scope::experiment;
  option.apply = [](In text, E& e, R& r) { owner_in<Owner>(e, r).*member = parse(text); };
  option.write = [](const E& e, const R& r) -> std::string {
    return write(owner_in<Owner>(e, r).*member);
  };
  return option;
}

/// Returns the row of a flag. Giving the flag sets the member to `on`; otherwise the member keeps
/// its type's first enumerator, such as "no" or "off".
template <auto member, auto on>
constexpr RunOption flag(std::string_view name, Group group, std::string_view help) {
  constexpr auto parse = [](In text) { return parse_flag(text) ? on : decltype(on){}; };
  constexpr auto write = [](auto value) { return value == on ? "true" : ""; };
  return row<member, parse, write>({name, "", "", group, help, Arity::flag});
}

const std::array rows{
    RunOption{"workload", "NAME[,NAME...]", "the quick suite", Group::basic,
              "what to measure (isoscale list workloads)", Arity::list, Scope::experiment,
              [](In text, E&, R&) { (void)parse_names(text); },
              [](const E& e, const R&) { return toml_string(e.workload); }},
    RunOption{"suite", "NAME", "", Group::basic, "set of experiments (isoscale list suites)"},
    row<&Q::model, [](In text) { return workloads::load_model(text); }, write_model>(
        {"model", "NAME|FILE.toml", "tiny", Group::basic,
         "transformer whose shapes to use (isoscale list models)"}),
    row<&Q::precision, program::parse_precision, write_name>(
        {"dtype", "f64|f32|tf32|f16|bf16|fp8", "f32", Group::basic,
         "compute type; the host has f64 and f32 only"}),
    RunOption{"set", "KEY=VALUE", "", Group::basic,
              "workload option (isoscale list options WORKLOAD)", Arity::repeated,
              Scope::experiment, [](In text, E&, R&) { (void)parse_assignment(text); },
              [](const E& e, const R&) { return write_options(e.base.options); }},
    row<&Q::seed,
        [](In text) { return parse_number(text, 0, std::numeric_limits<std::uint64_t>::max()); },
        [](std::uint64_t seed) { return toml_string(std::to_string(seed)); }>(
        {"seed", "N", "1", Group::what, "seed of all random numbers"}),

    row<&E::mesh, parse_mesh,
        [](const mesh::Request& mesh) { return mesh.empty() ? "" : toml_string(to_text(mesh)); }>(
        {"mesh", "AXIS=N[,AXIS=N...]", "by workload", Group::basic,
         "size of each axis; dp takes the rest if not named"}),
    row<&E::scaling, any_of<Scaling::strong, Scaling::weak>, write_name>(
        {"scaling", "strong|weak", "strong", Group::basic,
         "strong: same total work; weak: work grows with ranks"}),
    row<&E::placement, any_of<Placement::packed, Placement::spread>, write_name>(
        {"placement", "packed|spread", "packed", Group::where,
         "small points fill few nodes, or spread over all"}),
    row<&R::device, any_of<Device::automatic, Device::cuda, Device::host>, write_name>(
        {"device", "auto|cuda|host", "auto", Group::where,
         "device; auto takes GPUs if every rank has one"}),
    RunOption{"ranks", "N[,N...]|all", "powers of two, and the world", Group::basic,
              "rank counts; all: every one", Arity::list, Scope::run,
              [](In text, E&, R& r) {
                r.rank_counts = text == "all" ? RankCounts::every : RankCounts::doubling;
                r.ranks =
                    text == "all" ? std::vector<int>{} : parse_rank_counts(text, "'all', or ");
              },
              [](const E&, const R& r) {
                if (!r.ranks.empty()) return fmt::format("[{}]", fmt::join(r.ranks, ", "));
                return r.rank_counts == RankCounts::every ? toml_string("all") : "";
              }},
    row<&E::max_ranks, within<1, most_ranks>, write_if_set>(
        {"max-ranks", "N", "the world", Group::where, "largest rank count of the curve"}),
    row<&R::ranks_per_node, within<1, most_ranks_per_node>, write_if_set>(
        {"ranks-per-node", "N", "as started", Group::where, "ranks of a node, for --dry-run"}),
    row<&R::fill, any_of<FillIdle::idle, FillIdle::replicas>, write_name>(
        {"fill", "idle|replicas", "idle", Group::where,
         "what ranks outside a point do: sleep, or play copies"}),
    row<&R::blas_threads, within<1, most_blas_threads>, write_number>(
        {"blas-threads", "N", "1", Group::where, "BLAS threads per rank, on the host"}),
    row<&R::host_streams, any_of<HostStreams::automatic, HostStreams::threads, HostStreams::folded>,
        write_name>({"host-streams", "auto|threads|folded", "auto", Group::where,
                     "streams on the host: one thread each, or one in all"}),
    row<&R::gpu_bind, [](In text) { return text; },
        [](In text) { return text == automatic_gpu_bind ? "" : toml_string(text); }>(
        {"gpu-bind", "auto|GPU[,GPU...]", "auto", Group::where,
         "a GPU per rank of a node: index, UUID or PCI id", Arity::list}),
    flag<&R::share_gpu, ShareGpu::yes>("share-gpu", Group::where,
                                       "several ranks on one GPU: for correctness, not speed"),

    row<&R::precision, parse_share,
        [](double share) { return toml_string(fmt::format("{}", share)); }>(
        {"precision", "RATIO", "1%", Group::how_long,
         "stop a point when its interval is this narrow"}),
    row<&R::max_time, parse_time_limit, write_time>(
        {"max-time", "TIME", "30s", Group::basic,
         "target time of a point; up to 3 times that for 6 steps"}),
    row<&R::soak, parse_time_limit, write_time>(
        {"soak", "TIME", "", Group::how_long,
         "then replay one step this long and compare every bit"}),
    row<&R::timeout, parse_timeout, write_time>(
        {"timeout", "TIME", "120s", Group::how_long,
         "abort a point without progress after this; 0s: never"}),
    row<&R::budget, parse_time_limit, write_time>(
        {"budget", "TIME", "", Group::basic,
         "time limit of the whole run; most useful points first"}),

    row<&R::trace_steps, within<0, most_trace_steps>, write_number>(
        {"trace-steps", "N", "4", Group::looking,
         "traced steps kept per point, for the breakdown"}),
    row<&R::trace_ranks, within<1, most_ranks>, write_number>(
        {"trace-ranks", "N", "64", Group::looking,
         "ranks whose traces are kept, from every stage"}),
    flag<&R::graph, Graph::on>("graph", Group::looking,
                               "play each step as one captured CUDA graph"),
    flag<&R::nvtx, Nvtx::on>("nvtx", Group::looking,
                             "NVTX ranges of steps, phases and ops, for Nsight Systems"),
    row<&R::injections, parse_injections, write_injections>(
        {"inject", "WHAT[,WHAT...]", "", Group::looking,
         "faults: slow-rank=3:1.2 slow-link=0-1:2 jitter=5% ...", Arity::repeated_list}),
    row<&R::gemm_algorithms, parse_path, write_path>(
        {"gemm-algorithms", "RUN.h5", "choose by timing", Group::looking,
         "use the GEMM algorithms that this run chose"}),

    row<&R::output, parse_path, write_path>({"output", "FILE.h5",
                                             "isoscale-<workloads>-<host>-<time>.h5", Group::basic,
                                             "the run file"}),
    row<&R::fallback_dir, parse_path, write_path>(
        {"fallback-dir", "DIR", "TMPDIR", Group::file,
         "where to continue the file when it cannot be written"}),
    flag<&R::if_exists, IfExists::overwrite>("force", Group::file,
                                             "overwrite the run file when it exists"),
    row<&R::allowed, parse_names,
        [](const auto& names) { return write_text(fmt::format("{}", fmt::join(names, ","))); }>(
        {"allow", "CHECK[,CHECK...]", "", Group::file,
         "continue although these preflight checks say stop", Arity::repeated_list}),
    flag<&R::mode, Mode::dry_run>("dry-run", Group::basic,
                                  "print the plan (points, memory, FLOP, bytes) and run nothing"),
    row<&R::on, [](In text) { return parse_path(text).string(); }, write_text>(
        {"on", "NAME|FILE.toml", "", Group::file, "machine of a dry run (isoscale list systems)"}),
    flag<&R::verbosity, Verbosity::quiet>("quiet", Group::file,
                                          "no progress, and nothing on standard output"),
    // These options concern one launch only. They are not written, since the configuration in the
    // run file describes the whole run, which may take several launches.
    row<&R::resume, parse_path, not_written>(
        {"resume", "FILE.h5", "", Group::file, "finish this run, with its settings"}),
    row<&R::retry, any_of<Retry::failed, Retry::hung>, not_written>(
        {"retry", "failed|hung", "failed", Group::file,
         "what --resume measures again; hung: both"}),
};

}  // namespace

std::string_view name(Group group) {
  constexpr std::array<std::string_view, 6> names{"Basic",    "What",    "Where",
                                                  "How long", "Looking", "File"};
  return names[static_cast<std::size_t>(group)];
}

std::span<const RunOption> run_options() { return rows; }

std::string key_of(const RunOption& option) {
  std::string key{option.name};
  std::ranges::replace(key, '-', '_');
  return key;
}

const RunOption* find_option(std::string_view long_name) {
  const auto options = run_options();
  const auto found = std::ranges::find(options, long_name, &RunOption::name);
  return found == options.end() ? nullptr : &*found;
}

}  // namespace isoscale::settings
