// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/launches/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <tuple>
#include <utility>

namespace isoscale::analysis {
namespace {

using results::PointData;
using Texts = std::map<std::string, std::string>;

/// Options that scaling itself changes. A point may be skipped before their values are known.
constexpr std::array scaled_options =
    std::to_array<std::string_view>({"batch", "microbatch", "microbatches", "experts"});

bool is_scaled(const std::string& option) {
  return std::ranges::find(scaled_options, option) != scaled_options.end();
}

/// `text` divided by `by`; unchanged where it is not an integer that `by` divides.
std::string divided(const std::string& text, int by) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || read != end || number % by != 0) return text;
  return std::to_string(number / by);
}

/// Strong scaling keeps the global batch and divides it into fewer or smaller microbatches. Weak
/// scaling keeps these and the experts of one rank; batch and experts grow with dp and ep.
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

/// Whether `a` says nothing else than `b` of any option that it has.
bool agrees(const Texts& a, const Texts& b) {
  return std::ranges::all_of(a, [&b](const auto& option) {
    const auto found = b.find(option.first);
    return found == b.end() ? is_scaled(option.first) : found->second == option.second;
  });
}

/// Weak scaling grows heads and widths with tp, layers with pp, the sequence with cp.
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

/// Names whose values differ between experiments of one family.
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

constexpr std::array told_by{&Experiment::options, &Experiment::numbers, &Experiment::settings};

class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0);  // so that "ab", "c" is not "a", "bc"
  }
  void add(const Texts& texts) {
    add(std::to_string(texts.size()));
    for (const auto& [name, value] : texts) {
      add(name);
      add(value);
    }
  }
  [[nodiscard]] std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

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

bool are_alike(const Experiment& a, const Experiment& b) {
  const bool numbers_differ = !a.numbers.empty() && !b.numbers.empty() && a.numbers != b.numbers;
  return family(a) == family(b) && agrees(a.options, b.options) && agrees(b.options, a.options) &&
         !numbers_differ && a.settings == b.settings;
}

std::string fingerprint(const Experiment& experiment, std::string_view device) {
  Hash hash;
  for (const std::string_view text :
       {device, std::string_view{experiment.workload}, std::string_view{experiment.model},
        std::string_view{experiment.dtype}, std::string_view{experiment.scaling},
        std::string_view{experiment.placement}}) {
    hash.add(text);
  }
  hash.add(experiment.options);
  hash.add(experiment.numbers);
  hash.add(experiment.settings);
  return hash.text();
}

std::vector<std::string> titles(const std::vector<Experiment>& experiments) {
  std::map<decltype(family(experiments.front())), std::vector<const Experiment*>> families;
  for (const Experiment& of : experiments) families[family(of)].push_back(&of);
  std::vector<std::string> result(experiments.size());
  for (const auto& [unused, members] : families) {
    std::array<std::set<std::string>, told_by.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = telling(members, told_by[i]);
    for (const Experiment* const of : members) {
      std::string text = fmt::format("{}, {}, {}, {} scaling, {}", of->workload, of->model,
                                     of->dtype, of->scaling, of->placement);
      for (std::size_t i = 0; i < names.size(); ++i) {
        for (const std::string& name : names[i]) {
          const auto found = (of->*told_by[i]).find(name);
          if (found != (of->*told_by[i]).end()) {
            text += fmt::format(", {}={}", name, found->second);
          }
        }
      }
      result[static_cast<std::size_t>(of - experiments.data())] = std::move(text);
    }
  }
  return result;
}

}  // namespace isoscale::analysis
