// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/question_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::array<std::string_view, 3> batch_keys{"batch", "microbatch", "microbatches"};

bool is_given(const Settings& settings, std::string_view key) {
  return std::ranges::any_of(settings, [key](const auto& given) { return given.first == key; });
}

/// The number of samples is given by any two of the three; a new one replaces what it contradicts.
void forget_batch(const Settings& settings, workloads::Options& options) {
  const auto forget = [&](std::string_view key) {
    if (is_given(settings, key)) return;
    if (const auto found = options.find(key); found != options.end()) options.erase(found);
  };
  if (is_given(settings, "batch")) forget("microbatches");
  if (is_given(settings, "microbatch") || is_given(settings, "microbatches")) forget("batch");
}

[[noreturn]] void refuse_key(std::string_view key, const workloads::Workload& workload) {
  std::vector<std::string_view> known;
  for (const workloads::OptionSpec& spec : workload.options) known.push_back(spec.key);
  for (const MachinePart part : {MachinePart::link_inter, MachinePart::link_intra,
                                 MachinePart::latency, MachinePart::gemm, MachinePart::memory}) {
    known.push_back(name(part));
  }
  throw base::UsageError(fmt::format(
      "--set: {} is neither an option of {} nor a part of a machine{}; see: isoscale list options "
      "{}, or change link.inter, link.intra, latency, gemm or memory",
      base::quoted(key), workload.name, base::did_you_mean(key, known), workload.name));
}

void set_option(const std::string& key, const std::string& value, Question& question) {
  const workloads::Workload& workload = *question.workload;
  const auto spec = std::ranges::find(workload.options, key, &workloads::OptionSpec::key);
  if (spec == workload.options.end()) refuse_key(key, workload);
  if (std::ranges::find(question.fixed, key) != question.fixed.end()) {
    throw base::UsageError(
        fmt::format("--set: {} is given twice; give it once", base::quoted(key)));
  }
  try {
    workloads::validate(*spec, value);
  } catch (const base::UsageError& error) {
    throw base::UsageError(fmt::format("--set: {}", error.what()), error.where());
  }
  question.fixed.push_back(key);
  question.base.options.insert_or_assign(key, value);
}

void add_what_if(const std::string& text, Question& question) {
  try {
    question.what_if.push_back(parse_what_if(text));
  } catch (const base::UsageError& error) {
    throw base::UsageError(fmt::format("--set: {}", error.what()), error.where());
  }
}

}  // namespace

bool changes_work(const Settings& settings) {
  return std::ranges::any_of(batch_keys,
                             [&](std::string_view key) { return is_given(settings, key); });
}

void apply_settings(const Settings& settings, Question& question) {
  forget_batch(settings, question.base.options);
  for (const auto& [key, value] : settings) {
    // A comma joins changes of one curve, so the key names the first of them.
    if (is_machine_part(key)) {
      add_what_if(fmt::format("{}={}", key, value), question);
    } else {
      set_option(key, value, question);
    }
  }
}

}  // namespace isoscale::analysis
