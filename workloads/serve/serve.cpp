// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/serve/serve.hpp"

#include <array>
#include <cmath>

#include "base/text.hpp"
#include "program/builder.hpp"
#include "workloads/infer/infer.hpp"
#include "workloads/infer/replica.hpp"

namespace isoscale::workloads::serve {

namespace {

constexpr long long most_tokens = 1 << 24, most_batch = 4096, most_requests = 1'000'000;

// The most sections of a program: those of prefill and decode, for all batch sizes together.
constexpr std::uint64_t most_sections = 65536;

/// Reads a number above 0. Throws base::UsageError for any other text. The error's message ends
/// with `others`: what the caller accepts besides numbers (", or search"), or the unit of the
/// number (" of seconds").
double parse_number(std::string_view key, std::string_view text, std::string_view others) {
  const auto number = base::number_in<double>(text);
  if (number && std::isfinite(*number) && *number > 0) return *number;
  throw usage_error("{}: {} must be a number above 0{}", key, base::quoted(text), others);
}

std::optional<double> parse_rate(std::string_view key, std::string_view text) {
  if (text == "search") return std::nullopt;
  return parse_number(key, text, ", or search");
}

std::optional<double> parse_slo(std::string_view key, std::string_view text) {
  return parse_number(key, text, " of seconds");
}

/// Returns a request for the workload `infer`, in which each replica answers the largest batch.
Request as_infer(const Request& request) {
  const Setting setting = setting_of(request);
  Request result = request;
  result.options = {{"prompt", std::to_string(setting.prompt)},
                    {"output", std::to_string(setting.output)},
                    {"batch", std::to_string(setting.max_batch)},
                    {"vocabulary", setting.vocabulary}};
  return result;
}

/// Returns the programs of all ranks. The ranks of a pipeline stage share a program.
program::ProgramSet programs_of(const Request& request) {
  const Setting setting = setting_of(request);
  const std::vector<std::uint64_t> sizes = sizes_of(setting.max_batch);
  return infer::by_stage(request, [&](const mesh::Coordinates& at) {
    program::Builder builder{request.mesh};
    infer::Replica replica{builder,
                           request,
                           at,
                           {.samples = setting.max_batch,
                            .prompt = setting.prompt,
                            .positions = setting.prompt + setting.output,
                            .decoded = 1}};
    for (std::size_t size = 0; size < sizes.size(); ++size) {
      builder.begin(section_of(size, 0, setting.output));
      replica.prefill(sizes[size], setting.prompt);
      for (std::uint64_t token = 1; token < setting.output; ++token) {
        builder.begin(section_of(size, token, setting.output));
        replica.decode(sizes[size], setting.prompt + token - 1, 1);
      }
    }
    return builder.finish();
  });
}

}  // namespace

std::span<const OptionSpec> option_table() {
  static const std::array table{
      option::parsed<&Setting::rate, parse_rate>(
          "rate", "search",
          "requests per second over all replicas, such as 12.5; search "
          "finds the highest rate that is sustained"),
      option::parsed<&Setting::slo, parse_slo>(
          "slo", "",
          "a rate is sustained if its backlog does not grow and at most 1 in 100 requests takes "
          "longer than this, in seconds (default: no limit)"),
      option::choice<&Setting::process>(
          "arrivals", "poisson", {"poisson", "bursty"},
          "requests arrive one by one (poisson), or several at once (bursty; see burst)"),
      option::integer<&Setting::burst>("burst", "", {2, most_requests},
                                       "with arrivals=bursty: requests of a burst (default: 8)"),
      option::integer<&Setting::requests>(
          "requests", "200", {1, most_requests},
          "requests of each trial at one rate; fewer where time would run out"),
      option::choice<&Setting::policy>(
          "dispatch", "round-robin", {"round-robin", "least-loaded", "shortest-queue"},
          "which replica gets a request: the next in turn, the one with the least expected work, "
          "or the one with the fewest requests"),
      option::integer<&Setting::prompt>("prompt", "", {1, most_tokens},
                                        "tokens of each prompt (default: the model's sequence)"),
      option::integer<&Setting::output>("output", "16", {1, most_tokens},
                                        "tokens generated for each request"),
      option::choice<&Setting::lengths>(
          "lengths", "fixed", {"fixed", "uniform"},
          "generated tokens: output for each request, or random from 1 to output"),
      option::integer<&Setting::max_batch>("max_batch", "8", {1, most_batch},
                                           "largest number of requests that a replica batches"),
      option::toggle<&Setting::vocabulary>(
          "vocabulary", "on", "include the output projection, on the last pipeline stage"),
  };
  return table;
}

Setting setting_of(const Request& request) {
  constexpr std::uint64_t usual_burst = 8;
  auto setting = typed_options<Setting>(option_table(), request.options);
  if (setting.prompt == 0) setting.prompt = static_cast<std::uint64_t>(request.model.sequence);
  const bool is_bursty = setting.process == Process::bursty;
  if (!is_bursty && setting.burst > 0) {
    throw usage_error(
        "burst={} with arrivals=poisson, where requests come one by one; use arrivals=bursty, or "
        "leave burst out",
        setting.burst);
  }
  if (setting.burst == 0) setting.burst = is_bursty ? usual_burst : 1;
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
    throw usage_error(
        "output={} x {} batch sizes up to max_batch={}: {} programs, and a replica keeps {}; use "
        "an output of at most {}",
        setting.output, sizes, setting.max_batch, sizes * setting.output, most_sections,
        most_sections / sizes);
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
  return {.build =
              [](const Request& request, int /*batch*/) {
                Bench bench;
                bench.set = programs_of(request);
                return bench;
              },
          .uses_model = [](const Request&) { return true; }};
}

}  // namespace isoscale::workloads::serve
