// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/check.hpp"

#include "program/match.hpp"
#include "program/outline.hpp"

namespace isoscale::program {
namespace {

struct NoTimes {
  static std::int64_t cost(int /*rank*/, std::uint32_t /*op*/) { return 0; }
  static void span(int /*rank*/, std::uint32_t /*op*/, std::int64_t /*start*/,
                   std::int64_t /*end*/) {}
  static void step(int /*rank*/, int /*play*/, std::int64_t /*begin*/, std::int64_t /*end*/) {}
};

void check_matching(const OutlineSet& set) {
  for (const Folding folding : {Folding::as_streamed, Folding::folded}) {
    NoTimes policy;
    Matcher<NoTimes>{set, folding, 1, policy}.run();
  }
}

}  // namespace

void check(const ProgramSet& set) {
  for (const RankProgram& program : set.programs) check_races(program, set.mesh);
  for (const Section section : {Section::setup, Section::step}) {
    check_matching(outline(set, section));
  }
}

}  // namespace isoscale::program
