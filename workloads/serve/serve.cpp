// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/serve/serve.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "program/builder.hpp"
#include "workloads/infer/infer.hpp"
#include "workloads/infer/replica.hpp"

namespace isoscale::workloads::serve {

namespace {

constexpr long long most_tokens = 1 << 24, most_batch = 4096, most_requests = 1'000'000;

constexpr std::uint64_t most_sections = 65536;  // of prefill and decode, for all batch sizes

/// Reads a number above 0. Throws base::UsageError for any other text; its message ends with
/// `others`.
double parse_number(std::string_view key, std::string_view text, std::string_view others) {
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = failure == std::errc{} && end == text.data() + text.size();
  if (is_whole && std::isfinite(number) && number > 0) return number;
  throw base::UsageError(
      fmt::format("{}: {} must be a number above 0{}", key, base::quoted(text), others));
}

constexpr OptionSpec rate_spec{
    .key = "rate",
    .type = OptionType::text,
    .default_value = "search",
    .help =
        "requests per second over all replicas, such as 12.5; search finds the highest rate "
        "that is sustained"};

std::uint64_t whole(const OptionReader& options, std::string_view key) {
  return static_cast<std::uint64_t>(options.integer(key));
}

/// Returns the request of the workload `infer` at the largest batch size, which is the work of one
/// replica.
Request as_infer(const Request& request) {
  const Setting setting = setting_of(request);
  Request result = request;
  result.options = {
      {"prompt", std::to_string(setting.prompt)},
      {"output", std::to_string(setting.output)},
      {"batch", std::to_string(setting.max_batch)},
      {"vocabulary", OptionReader{option_table(), request.options}.text("vocabulary")}};
  return result;
}

program::RankProgram stage_program(const Request& request, int stage) {
  const Setting setting = setting_of(request);
  program::Builder builder{request.mesh};
  infer::Replica replica{builder,
                         request,
                         mesh::Coordinates{.pp = stage},
                         {.samples = setting.max_batch,
                          .prompt = setting.prompt,
                          .positions = setting.prompt + setting.output,
                          .decoded = 1}};
  const std::vector<std::uint64_t> sizes = sizes_of(setting.max_batch);
  for (std::size_t size = 0; size < sizes.size(); ++size) {
    builder.begin(section_of(size, 0, setting.output));
    replica.prefill(sizes[size], setting.prompt);
    for (std::uint64_t token = 1; token < setting.output; ++token) {
      builder.begin(section_of(size, token, setting.output));
      replica.decode(sizes[size], setting.prompt + token - 1, 1);
    }
  }
  return builder.finish();
}

/// Returns the programs of a replica. The ranks of a stage share a program.
program::ProgramSet programs_of(const Request& request) {
  program::ProgramSet set{.mesh = request.mesh, .programs = {}, .program_of_rank = {}};
  for (int stage = 0; stage < request.mesh.pp; ++stage) {
    set.programs.push_back(stage_program(request, stage));
  }
  for (int rank = 0; rank < request.mesh.size(); ++rank) {
    set.program_of_rank.push_back(
        static_cast<std::uint32_t>(mesh::coordinates(request.mesh, rank).pp));
  }
  return set;
}

}  // namespace

std::span<const OptionSpec> option_table() {
  static const std::array table{
      rate_spec,
      OptionSpec{.key = "slo",
                 .type = OptionType::text,
                 .help = "a rate is sustained if its backlog does not grow and at most 1 in 100 "
                         "requests takes longer than this, in seconds (default: no limit)"},
      OptionSpec{.key = "arrivals",
                 .default_value = "poisson",
                 .choices = {"poisson", "bursty"},
                 .help = "requests arrive one by one (poisson), or several at once (bursty; see "
                         "burst)"},
      OptionSpec{.key = "burst",
                 .type = OptionType::integer,
                 .minimum = 2,
                 .maximum = most_requests,
                 .help = "with arrivals=bursty: requests of a burst (default: 8)"},
      OptionSpec{.key = "requests",
                 .type = OptionType::integer,
                 .default_value = "200",
                 .minimum = 1,
                 .maximum = most_requests,
                 .help = "requests of each trial at one rate; fewer where time would run out"},
      OptionSpec{.key = "dispatch",
                 .default_value = "round-robin",
                 .choices = {"round-robin", "least-loaded", "shortest-queue"},
                 .help = "which replica gets a request: the next in turn, the one with the least "
                         "expected work, or the one with the fewest requests"},
      OptionSpec{.key = "prompt",
                 .type = OptionType::integer,
                 .minimum = 1,
                 .maximum = most_tokens,
                 .help = "tokens of each prompt (default: the model's sequence)"},
      OptionSpec{.key = "output",
                 .type = OptionType::integer,
                 .default_value = "16",
                 .minimum = 1,
                 .maximum = most_tokens,
                 .help = "tokens generated for each request"},
      OptionSpec{.key = "lengths",
                 .default_value = "fixed",
                 .choices = {"fixed", "uniform"},
                 .help = "generated tokens: output for each request, or random from 1 to output"},
      OptionSpec{.key = "max_batch",
                 .type = OptionType::integer,
                 .default_value = "8",
                 .minimum = 1,
                 .maximum = most_batch,
                 .help = "largest number of requests that a replica batches"},
      OptionSpec{.key = "vocabulary",
                 .default_value = "on",
                 .choices = {"on", "off"},
                 .help = "include the output projection, on the last pipeline stage"},
  };
  return table;
}

double Setting::mean_tokens() const {
  const auto most = static_cast<double>(output);
  return lengths == Lengths::fixed ? most : (1 + most) / 2;
}

Setting setting_of(const Request& request) {
  constexpr std::uint64_t usual_burst = 8;
  const OptionReader options{option_table(), request.options};
  Setting setting{.prompt = options.has("prompt")
                                ? whole(options, "prompt")
                                : static_cast<std::uint64_t>(request.model.sequence),
                  .output = whole(options, "output"),
                  .lengths = options.is("lengths", "uniform") ? Lengths::uniform : Lengths::fixed,
                  .max_batch = whole(options, "max_batch"),
                  .process = options.is("arrivals", "bursty") ? Process::bursty : Process::poisson,
                  .requests = whole(options, "requests"),
                  .policy = parse_policy(options.text("dispatch"))};
  if (!options.is("rate", "search")) {
    setting.rate = parse_number("rate", options.text("rate"), ", nor search");
  }
  if (options.has("slo")) setting.slo = parse_number("slo", options.text("slo"), " of seconds");
  if (setting.process == Process::bursty) {
    setting.burst = options.has("burst") ? whole(options, "burst") : usual_burst;
  } else if (options.has("burst")) {
    throw base::UsageError(fmt::format(
        "burst={} with arrivals=poisson, where requests come one by one; use arrivals=bursty, or "
        "leave burst out",
        options.integer("burst")));
  }
  return setting;
}

std::vector<std::uint64_t> sizes_of(std::uint64_t max_batch) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = 1; size < max_batch; size *= 2) sizes.push_back(size);
  sizes.push_back(max_batch);
  return sizes;
}

std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling) {
  return infer::limits(as_infer(base), scaling);
}

Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling) {
  const Setting setting = setting_of(base);
  if (base.precision == Precision::fp8) {
    throw base::UsageError(
        "--dtype fp8: workload serve computes in f64, f32, tf32, f16 and bf16; GEMMs of a few rows "
        "have no extents that fp8 needs; use --dtype bf16");
  }
  const std::uint64_t sizes = sizes_of(setting.max_batch).size();
  if (sizes * setting.output > most_sections) {
    throw base::UsageError(fmt::format(
        "output={} x {} batch sizes up to max_batch={}: {} programs, and a replica keeps {}; use "
        "an output of at most {}",
        setting.output, sizes, setting.max_batch, sizes * setting.output, most_sections,
        most_sections / sizes));
  }
  Request result = infer::scale(as_infer(base), mesh, scaling);
  result.options = base.options;
  result.options["prompt"] = std::to_string(setting.prompt);
  return result;
}

Request twin(const Request& request) { return infer::twin(as_infer(request)); }

program::Section section_of(std::size_t size, std::uint64_t token, std::uint64_t output) {
  return program::step_section(size * static_cast<std::size_t>(output) +
                               static_cast<std::size_t>(token));
}

program::ProgramSet replica_programs(const Request& request) {
  Request one = request;
  one.mesh.dp = 1;
  return programs_of(one);
}

BenchHooks hooks() {
  return {.batches = [](const Request&) { return 1; },
          .build =
              [](const Request& request, int /*batch*/) {
                Bench bench;
                bench.set = programs_of(request);
                return bench;
              },
          .uses_model = [](const Request&) { return true; }};
}

}  // namespace isoscale::workloads::serve
