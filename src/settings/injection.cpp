// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "settings/injection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <type_traits>

#include "base/text.hpp"
#include "settings/option_values.hpp"
#include "units/quantity_text.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::settings {
namespace {

constexpr int most_launch_ranks = 1 << 24;
constexpr double largest_factor = 1000, largest_jitter = 1, largest_drift_ppm = 500;
constexpr double longest_offset = 3600;  // largest offset of a clock, in seconds

int parse_rank(std::string_view text) { return parse_int(text, 0, most_launch_ranks - 1); }

/// Reads a factor above 1, since an injected fault can only slow things down.
double parse_factor(std::string_view text) {
  const auto factor = base::number_in<double>(text);
  if (!factor || !(*factor > 1 && *factor <= largest_factor)) {
    refuse_value(text, fmt::format("is not a factor above 1 and up to {}", largest_factor));
  }
  return *factor;
}

SlowRank parse_slow_rank(std::string_view text) {
  const auto parts = base::split(text, ':');
  if (parts.size() != 2)
    refuse_value(text, "is not RANK:FACTOR: write for example slow-rank=3:1.2");
  return {.rank = parse_rank(parts[0]), .factor = parse_factor(parts[1])};
}

SlowLink parse_slow_link(std::string_view text) {
  const auto parts = base::split(text, ':');
  const auto ends = base::split(parts.front(), '-');
  if (parts.size() != 2 || ends.size() != 2) {
    refuse_value(text, "is not RANK-RANK:FACTOR: write for example slow-link=0-1:2");
  }
  const auto [low, high] = std::minmax({parse_rank(ends[0]), parse_rank(ends[1])});
  if (low == high) refuse_value(text, "names one rank twice: a link has two ends");
  return {.low = low, .high = high, .factor = parse_factor(parts[1])};
}

Jitter parse_jitter(std::string_view text) {
  const double mean = units::parse_ratio(text);
  if (!(mean > 0 && mean <= largest_jitter))
    refuse_value(text, "is not a share above 0% and up to 100%");
  return {.mean = mean};
}

units::Seconds parse_offset(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  const double size = units::parse_seconds(text.substr(is_negative ? 1 : 0)).value();
  if (size > longest_offset) refuse_value(text, "is more than an hour");
  return units::Seconds{is_negative ? -size : size};
}

double parse_drift(std::string_view text) {
  constexpr std::string_view unit = "ppm";
  const auto ppm =
      base::number_in<double>(text.substr(0, std::max(text.size(), unit.size()) - unit.size()));
  if (!text.ends_with(unit) || !ppm || !(std::abs(*ppm) <= largest_drift_ppm)) {
    refuse_value(text,
                 fmt::format("is not a drift of up to {} ppm: write for example 20ppm or -20ppm",
                             largest_drift_ppm));
  }
  return *ppm * 1e-6;
}

ClockError parse_clock(std::string_view text) {
  const auto parts = base::split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) {
    refuse_value(text,
                 "is not RANK:OFFSET or RANK:OFFSET:DRIFT: write for example clock=2:5ms:20ppm");
  }
  return {.rank = parse_rank(parts[0]),
          .offset = parse_offset(parts[1]),
          .drift = parts.size() == 3 ? parse_drift(parts[2]) : 0};
}

Delay parse_delay(std::string_view text) {
  const units::FlopsPerSecond rate = units::parse_flops_per_second(text);
  if (!(rate.value() > 0))
    refuse_value(text, "must be a rate above 0: write for example delay=20GFLOP/s");
  return {.rate = rate};
}

StuckRank parse_stuck(std::string_view text) {
  const auto parts = base::split(text, ':');
  const bool spins = parts.size() == 2 && parts[1] == "spin";
  if (!spins && (parts.size() != 2 || parts[1] != "throw")) {
    refuse_value(text, "is not RANK:spin or RANK:throw: write for example stuck=2:spin");
  }
  return {.rank = parse_rank(parts[0]),
          .how = spins ? program::Stuck::spins : program::Stuck::fails};
}

using Fault = decltype(Injection::what);

struct Kind {
  std::string_view name;
  Fault (*parse)(std::string_view value);
};
constexpr std::array kinds{
    Kind{"slow-rank", [](std::string_view text) -> Fault { return parse_slow_rank(text); }},
    Kind{"slow-link", [](std::string_view text) -> Fault { return parse_slow_link(text); }},
    Kind{"jitter", [](std::string_view text) -> Fault { return parse_jitter(text); }},
    Kind{"clock", [](std::string_view text) -> Fault { return parse_clock(text); }},
    Kind{"delay", [](std::string_view text) -> Fault { return parse_delay(text); }},
    Kind{"stuck", [](std::string_view text) -> Fault { return parse_stuck(text); }},
    Kind{"flip", [](std::string_view text) -> Fault { return FlippedBits{parse_rank(text)}; }},
};

Injection parse_injection(std::string_view text) {
  const auto equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (equals == std::string_view::npos || equals + 1 == text.size()) {
    refuse_value(text, "is not KIND=VALUE: write for example slow-rank=3:1.2");
  }
  std::vector<std::string_view> names;
  for (const Kind& kind : kinds) {
    if (kind.name == name) {
      return {.text = std::string{text}, .what = kind.parse(text.substr(equals + 1))};
    }
    names.push_back(kind.name);
  }
  refuse_value(name, fmt::format("is not one of {}{}", fmt::join(names, ", "),
                                 base::did_you_mean(name, names)));
}

}  // namespace

std::vector<int> ranks_of(const Injection& injection) {
  return std::visit(
      [](const auto& fault) -> std::vector<int> {
        if constexpr (requires { fault.rank; }) {
          return {fault.rank};
        } else if constexpr (requires { fault.low; }) {
          return {fault.low, fault.high};
        } else {
          using Kind = std::remove_cvref_t<decltype(fault)>;
          static_assert(std::is_same_v<Kind, Jitter> || std::is_same_v<Kind, Delay>);
          return {};
        }
      },
      injection.what);
}

std::vector<Injection> parse_injections(std::string_view text) {
  std::vector<Injection> result;
  std::set<std::pair<std::size_t, std::vector<int>>> seen;  // kind of fault, and its ranks
  for (const std::string_view part : base::split(text, ',')) {
    Injection injection = parse_injection(part);
    if (!seen.emplace(injection.what.index(), ranks_of(injection)).second) {
      refuse_value(part, "is of a kind and of ranks that are given already: give each once");
    }
    result.push_back(std::move(injection));
  }
  return result;
}

std::string write_injections(const std::vector<Injection>& injections) {
  std::vector<std::string> texts;
  for (const Injection& injection : injections) {
    texts.push_back(workloads::toml_string(injection.text));
  }
  return texts.empty() ? "" : fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string slowing_injections(const std::vector<Injection>& injections) {
  std::vector<std::string_view> texts;
  for (const Injection& injection : injections) {
    const bool slows = !std::holds_alternative<ClockError>(injection.what) &&
                       !std::holds_alternative<FlippedBits>(injection.what);
    if (slows) texts.emplace_back(injection.text);
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace isoscale::settings
