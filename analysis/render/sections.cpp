// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/sections.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::array<SectionName, section_count> all_names{{
    {Section::curves, "curves", "each curve: step time, throughput and efficiency of every point"},
    {Section::breakdown, "breakdown", "where a traced step went: compute, transfer, waiting ..."},
    {Section::efficiency, "efficiency", "speed-up and efficiency with intervals, serial fractions"},
    {Section::waterfall, "waterfall",
     "time lost by cause, from the ideal step to the measured one"},
    {Section::pop, "pop", "the efficiency tree of the POP Centre of Excellence"},
    {Section::strategies, "strategies", "pipeline bubbles, offloading, uneven shares"},
    {Section::phases, "phases", "traced steps by phase, mesh axis and GEMM shape"},
    {Section::layers, "layers", "traced steps by layer"},
    {Section::soak, "soak", "steps replayed and compared bit by bit"},
    {Section::nodes, "nodes", "which mesh axes cross nodes"},
    {Section::devices, "devices", "clocks, temperature, power and energy"},
    {Section::findings, "findings", "what was found, most severe first, with the next step"},
    {Section::warnings, "warnings", "all warnings of the run and its files"},
    {Section::preflight, "preflight", "what the checks before the run found"},
    {Section::rows, "rows", "micro-benchmarks, inference and serving"},
    {Section::calibration, "calibration", "latency, bandwidth and ceilings fitted to the rows"},
    {Section::legend, "legend", "what the words and columns mean"},
}};

}  // namespace

std::span<const SectionName> section_names() { return all_names; }

Sections Sections::parse(std::string_view names) {
  Sections wanted;
  if (names == "all") return wanted;
  wanted.wanted_.reset();
  while (true) {
    const std::string_view name = names.substr(0, names.find(','));
    const auto known = std::ranges::find(all_names, name, &SectionName::name);
    if (known == all_names.end()) {
      std::vector<std::string_view> accepted;
      for (const SectionName& at : all_names) accepted.push_back(at.name);
      throw base::UsageError(fmt::format(
          "--detail has no section {}{}; the sections are {}, or all", base::quoted(name),
          base::did_you_mean(name, accepted), fmt::join(accepted, ", ")));
    }
    wanted.wanted_.set(static_cast<std::size_t>(known->section));
    if (name.size() == names.size()) return wanted;
    names.remove_prefix(name.size() + 1);
  }
}

Section section_of_remark(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, Section>, 9> known{{
      {"baseline", Section::efficiency},
      {"serial", Section::efficiency},
      {"Amdahl", Section::efficiency},
      {"Gustafson", Section::efficiency},
      {"USL", Section::efficiency},
      {"axes", Section::nodes},
      {"soak", Section::soak},
      {"lost", Section::waterfall},
      {"cause", Section::waterfall},
  }};
  const auto found = std::ranges::find(known, key, &std::pair<std::string_view, Section>::first);
  return found == known.end() ? Section::curves : found->second;
}

}  // namespace isoscale::analysis
