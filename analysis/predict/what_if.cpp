// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/question.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::analysis::predict {
namespace {

using simulate::Machine;
using simulate::TimedCommunication;

constexpr std::array<std::string_view, 5> part_names{"link.inter", "link.intra", "latency", "gemm",
                                                     "memory"};

std::optional<MachinePart> part_of(std::string_view key) {
  const auto* const found = std::ranges::find(part_names, key);
  if (found == part_names.end()) return std::nullopt;
  return static_cast<MachinePart>(found - part_names.begin());
}

/// Parses "2x".
double parse_factor(std::string_view text, std::string_view change) {
  constexpr double least = 1e-3, most = 1e3;
  double factor = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, factor);
  const bool is_number = error == std::errc{} && std::string_view{stop, end} == "x";
  if (is_number && factor >= least && factor <= most) return factor;
  throw base::UsageError(
      fmt::format("{}: {} must be a factor from 0.001x to 1000x, as in link.inter=2x",
                  base::quoted(change), base::quoted(text)));
}

Change parse_change(std::string_view text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::string_view key = text.substr(0, equals);
  const std::optional<MachinePart> part = part_of(key);
  if (!part) {
    throw base::UsageError(fmt::format("unknown part of a machine {}{}; the parts are {}",
                                       base::quoted(key), base::did_you_mean(key, part_names),
                                       fmt::join(part_names, ", ")));
  }
  if (equals == text.size()) {
    throw base::UsageError(fmt::format("{} has no factor; write {}=2x", base::quoted(text), key));
  }
  return {.part = *part, .factor = parse_factor(text.substr(equals + 1), text)};
}

/// Returns the seconds of an empty message, as far as the curve shows them.
double latency_of(const TimedCommunication& curve) {
  if (curve.latency) return *curve.latency;
  return curve.samples.empty() ? 0 : curve.samples.front().seconds;
}

void scale_latency(TimedCommunication& curve, double factor) {
  const double latency = latency_of(curve);
  for (simulate::SizeSeconds& sample : curve.samples) {
    sample.seconds += (factor - 1) * std::min(latency, sample.seconds);
  }
  if (curve.latency) *curve.latency *= factor;
}

void scale_bandwidth(TimedCommunication& curve, double factor) {
  const double latency = latency_of(curve);
  for (simulate::SizeSeconds& sample : curve.samples) {
    const double fixed = std::min(latency, sample.seconds);
    sample.seconds = fixed + (sample.seconds - fixed) / factor;
  }
  if (curve.bandwidth) *curve.bandwidth *= factor;
}

/// The result of a change: true if the machine has values for the part.
using Found = bool;

Found change_link(Machine& machine, MachinePart part, double factor) {
  const bool inter = part == MachinePart::link_inter;
  bool found = false;
  if (machine.network) {
    simulate::Link& link = inter ? machine.network->across : machine.network->inside;
    found = link.bandwidth > 0;
    link.bandwidth *= factor;
  }
  for (TimedCommunication& curve : machine.measured.communication) {
    if ((curve.nodes > 1) != inter) continue;
    scale_bandwidth(curve, factor);
    found = true;
  }
  return found;
}

Found change_latency(Machine& machine, double factor) {
  if (machine.network) {
    simulate::Network& network = *machine.network;
    for (double* const latency :
         {&network.inside.latency, &network.across.latency, &network.start,
          &network.multicast_rate.latency, &network.multicast_rate.across_latency}) {
      *latency *= factor;
    }
  }
  for (TimedCommunication& curve : machine.measured.communication) scale_latency(curve, factor);
  return machine.network.has_value() || !machine.measured.communication.empty();
}

Found change_gemm(Machine& machine, double factor) {
  bool found = !machine.measured.gemms.empty();
  for (simulate::TimedGemm& gemm : machine.measured.gemms) gemm.seconds /= factor;
  if (!machine.processor) return found;
  for (simulate::MatrixRate& rate : machine.processor->matrix) {
    rate.peak *= factor;
    found = true;
  }
  return found;
}

Found change_memory(Machine& machine, double factor) {
  for (simulate::TimedLocal& local : machine.measured.locals) local.seconds /= factor;
  if (machine.memory) machine.memory->bandwidth *= factor;
  return !machine.measured.locals.empty() || (machine.memory && machine.memory->bandwidth > 0);
}

Found apply(Machine& machine, const Change& change) {
  switch (change.part) {
    case MachinePart::link_inter:
    case MachinePart::link_intra:
      return change_link(machine, change.part, change.factor);
    case MachinePart::latency:
      return change_latency(machine, change.factor);
    case MachinePart::gemm:
      return change_gemm(machine, change.factor);
    case MachinePart::memory:
      return change_memory(machine, change.factor);
  }
  return false;
}

std::string_view what_it_is(MachinePart part) {
  constexpr std::array<std::string_view, 5> texts{"communication between nodes",
                                                  "communication inside a node", "communication",
                                                  "matrix multiplications", "device memory"};
  return texts[static_cast<std::size_t>(part)];
}

}  // namespace

std::string_view name(MachinePart part) { return part_names[static_cast<std::size_t>(part)]; }

bool is_machine_part(std::string_view key) { return part_of(key).has_value(); }

WhatIf parse_what_if(std::string_view text) {
  WhatIf result{.title = std::string{text}, .changes = {}};
  for (std::string_view rest = text;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const Change change = parse_change(rest.substr(0, comma));
    if (std::ranges::find(result.changes, change.part, &Change::part) != result.changes.end()) {
      throw base::UsageError(fmt::format("{} changes {} twice; give each part once",
                                         base::quoted(text), name(change.part)));
    }
    result.changes.push_back(change);
    if (comma == rest.size()) return result;
    rest.remove_prefix(comma + 1);
  }
}

simulate::Machine changed(const simulate::Machine& machine, const WhatIf& what_if) {
  simulate::Machine result = machine;
  for (const Change& change : what_if.changes) {
    if (apply(result, change)) continue;
    throw base::UsageError(fmt::format("--set {}: nothing is known of {} on {}; leave it out",
                                       what_if.title, what_it_is(change.part), machine.name));
  }
  return result;
}

}  // namespace isoscale::analysis::predict
