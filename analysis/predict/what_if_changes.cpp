// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/question.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::analysis::predict {
namespace {

using simulate::Machine;
using simulate::TimedCommunication;

/// Parses the factor of a change such as "link.inter=2x"; `text` is "2x".
double parse_factor(std::string_view text, std::string_view change) {
  constexpr double least = 1e-3, most = 1e3;
  const std::optional<double> factor =
      text.ends_with('x') ? base::number_in<double>(text.substr(0, text.size() - 1)) : std::nullopt;
  if (factor && *factor >= least && *factor <= most) return *factor;
  throw base::usage_error("{}: {} must be a factor from 0.001x to 1000x, as in link.inter=2x",
                          base::quoted(change), base::quoted(text));
}

Change parse_change(std::string_view text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::string_view key = text.substr(0, equals);
  const MachinePart* const part = machine_part(key);
  if (part == nullptr) {
    std::vector<std::string_view> names;
    for (const MachinePart& at : machine_parts()) names.push_back(at.name);
    throw base::usage_error("unknown part of a machine {}{}; the parts are {}", base::quoted(key),
                            base::did_you_mean(key, names), fmt::join(names, ", "));
  }
  if (equals == text.size()) {
    throw base::usage_error("{} has no factor; write {}=2x", base::quoted(text), key);
  }
  return {.part = part, .factor = parse_factor(text.substr(equals + 1), text)};
}

/// Returns the seconds of an empty message: the fitted latency or, if there is none, the time of
/// the smallest measured size.
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

// The functions below change one part of the machine by a factor. They return false if the machine
// has no values for this part.

enum class Reach : std::uint8_t { inside, across };

template <Reach reach>
bool change_link(Machine& machine, double factor) {
  constexpr bool inter = reach == Reach::across;
  bool found = false;
  if (machine.network) {
    simulate::Link& link = inter ? machine.network->across : machine.network->inside;
    found = link.bandwidth > 0;
    link.bandwidth *= factor;
    if (inter) machine.network->tree_most *= factor;
  }
  for (TimedCommunication& curve : machine.measured.communication) {
    if ((curve.nodes > 1) != inter) continue;
    scale_bandwidth(curve, factor);
    found = true;
  }
  return found;
}

bool change_latency(Machine& machine, double factor) {
  if (machine.network) {
    simulate::Network& network = *machine.network;
    for (double* const latency :
         {&network.inside.latency, &network.across.latency, &network.start}) {
      *latency *= factor;
    }
    for (simulate::Tier& tier : network.tiers) tier.latency *= factor;
    for (std::optional<simulate::SwitchReduction>* const rate :
         {&network.multicast, &network.collnet}) {
      if (!*rate) continue;
      (*rate)->latency *= factor;
      (*rate)->across_latency *= factor;
    }
  }
  for (TimedCommunication& curve : machine.measured.communication) scale_latency(curve, factor);
  return machine.network.has_value() || !machine.measured.communication.empty();
}

bool change_gemm(Machine& machine, double factor) {
  bool found = !machine.measured.gemms.empty();
  for (simulate::TimedGemm& gemm : machine.measured.gemms) gemm.seconds /= factor;
  for (auto& [precision, rate] : machine.measured.gemm_ceilings) rate *= factor;
  if (!machine.processor) return found;
  for (simulate::MatrixRate& rate : machine.processor->matrix) {
    rate.peak *= factor;
    found = true;
  }
  return found;
}

/// Changes the power limit. If the voltage grows with the clock frequency f, power is proportional
/// to f^3, so a rate that the power limits grows with the cube root of the limit.
bool change_power(Machine& machine, double factor) {
  if (!machine.processor || machine.processor->power == 0) return false;
  for (simulate::MatrixRate& rate : machine.processor->matrix) {
    for (simulate::ReachedShare& at : rate.reached) at.share *= std::cbrt(factor);
  }
  return true;
}

bool change_memory(Machine& machine, double factor) {
  for (simulate::TimedLocal& local : machine.measured.locals) local.seconds /= factor;
  if (machine.memory) machine.memory->bandwidth *= factor;
  return !machine.measured.locals.empty() || (machine.memory && machine.memory->bandwidth > 0);
}

constexpr std::array<MachinePart, 6> parts{
    {{"link.inter", "communication between nodes", change_link<Reach::across>},
     {"link.intra", "communication inside a node", change_link<Reach::inside>},
     {"latency", "communication", change_latency},
     {"gemm", "matrix multiplications", change_gemm},
     {"power", "the power limit", change_power},
     {"memory", "device memory", change_memory}}};

}  // namespace

std::span<const MachinePart> machine_parts() { return parts; }

const MachinePart* machine_part(std::string_view name) {
  const auto* const found = std::ranges::find(parts, name, &MachinePart::name);
  return found == parts.end() ? nullptr : found;
}

WhatIf parse_what_if(std::string_view text) {
  WhatIf result{.title = std::string{text}, .changes = {}};
  for (const std::string_view part : base::split(text, ',')) {
    const Change change = parse_change(part);
    if (std::ranges::find(result.changes, change.part, &Change::part) != result.changes.end()) {
      throw base::usage_error("{} changes {} twice; give each part once", base::quoted(text),
                              change.part->name);
    }
    result.changes.push_back(change);
  }
  return result;
}

simulate::Machine changed(const simulate::Machine& machine, const WhatIf& what_if) {
  simulate::Machine result = machine;
  for (const Change& change : what_if.changes) {
    if (change.part->change(result, change.factor)) continue;
    throw base::usage_error("--set {}: nothing is known of {} on {}; leave it out", what_if.title,
                            change.part->meaning, machine.name);
  }
  return result;
}

}  // namespace isoscale::analysis::predict
