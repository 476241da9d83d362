// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// make_sample_run FILE: writes a run with something in every field; point 1 is in a part file,
// point 2 was skipped, points 3 to 7 are micro-benchmarks. For tests of the file by tools that are
// not ours.
#include <cstdio>
#include <exception>

#include "results/writer/writer.hpp"
#include "tests/unit/bench_samples.hpp"
#include "tests/unit/results_samples.hpp"

int main(int argument_count, char** arguments) {
  namespace results = isoscale::results;
  namespace settings = isoscale::settings;
  namespace units = isoscale::units;
  if (argument_count != 2) {
    std::fputs("usage: make_sample_run FILE\n", stderr);
    return 2;
  }
  try {
    constexpr units::Bytes room_for_small_points{4'000'000};
    constexpr int few_steps = 5, many_steps = 120'000;
    results::RunData run = results::samples::header();
    run.preflight = results::samples::preflight();
    results::RunWriter writer{arguments[1], run, settings::IfExists::refuse, room_for_small_points};
    writer.commit(results::samples::point(0, few_steps));
    writer.commit(results::samples::point(1, many_steps));
    writer.commit(results::samples::skipped_point(2));
    writer.commit(isoscale::samples::collectives(3));
    writer.commit(isoscale::samples::gemms(4));
    writer.commit(isoscale::samples::pairs(5));
    writer.commit(isoscale::samples::memory(6));
    writer.commit(isoscale::samples::overlaps(7));
    run.ended = "2026-01-02T03:05:00Z";
    run.complete = true;
    run.calibration = results::samples::calibration();
    writer.finish(run);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_sample_run: %s\n", error.what());
    return 1;
  }
}
