// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
//
// TARGET SEEDS [--inputs N] [--seed S]   feeds a fuzz target (target.hpp) the files of the folder
//                                        SEEDS and damaged copies of them, without libFuzzer
// TARGET SEEDS --seed S --only NUMBER    feeds it one of them, in this very process
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/mutation.hpp"
#include "tests/fuzz/target.hpp"

namespace isoscale::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> contents_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator{folder}) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> contents;
  std::ranges::transform(files, std::back_inserter(contents), content_of);
  return contents;
}

/// The seeds themselves come first; then each is damaged, now and then more than once, or joined to
/// another before.
std::string input_of(const std::vector<std::string>& seeds, std::uint64_t seed,
                     std::size_t number) {
  if (number < seeds.size()) return seeds[number];
  Mutator mutator{seed, number};
  std::string input = seeds[mutator.below(seeds.size())];
  if (mutator.below(8) == 0) {
    const std::string& other = seeds[mutator.below(seeds.size())];
    input.resize(mutator.below(input.size() + 1));
    input += other.substr(mutator.below(other.size() + 1));
  }
  do {
    mutator.damage(input);
  } while (mutator.below(3) == 0);
  return input;
}

void feed(const std::string& input) {
  (void)LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()),  // NOLINT
                               input.size());
}

/// Returns whether a process of its own gets past the inputs begin to end - 1.
bool passes(const std::vector<std::string>& seeds, std::uint64_t seed, std::size_t begin,
            std::size_t end) {
  const auto feed_all = [&] {
    for (std::size_t number = begin; number < end; ++number) feed(input_of(seeds, seed, number));
    return 0;
  };
  return status_of(feed_all) == 0;
}

/// The number of the first input that a process ended at.
std::optional<std::size_t> first_wrong(const std::vector<std::string>& seeds, std::uint64_t seed,
                                       std::size_t inputs) {
  constexpr std::size_t batch = 1000;  // to a process: starting one takes as long as many inputs
  for (std::size_t begin = 0; begin < inputs; begin += batch) {
    const std::size_t end = std::min(begin + batch, inputs);
    if (passes(seeds, seed, begin, end)) continue;
    std::size_t number = begin;
    while (number + 1 < end && passes(seeds, seed, number, number + 1)) ++number;
    return number;
  }
  return std::nullopt;
}

}  // namespace
}  // namespace isoscale::fuzz

int main(int argc, char** argv) {
  using namespace isoscale::fuzz;  // NOLINT: this is all that the program is
  std::string folder;
  std::size_t inputs = 20'000, only = 0;
  std::uint64_t seed = std::random_device{}();
  CLI::App app{"Feeds a fuzz target damaged copies of its seeds."};
  app.add_option("seeds", folder, "a folder of files")->required()->check(CLI::ExistingDirectory);
  app.add_option("--inputs", inputs, "how many");
  app.add_option("--seed", seed, "what they depend on; otherwise by chance");
  auto* const one = app.add_option("--only", only, "the number of one input");
  CLI11_PARSE(app, argc, argv);
  const std::vector<std::string> seeds = contents_of(folder);
  if (seeds.empty()) {
    fmt::print(stderr, "{} has no files\n", folder);
    return 2;
  }
  if (*one) {
    const std::string input = input_of(seeds, seed, only);
    std::ofstream{"input", std::ios::binary} << input;
    fmt::print("{} bytes, written to the file input\n", input.size());
    feed(input);
    return 0;
  }
  fmt::print("seed {}\n", seed);
  if (const auto wrong = first_wrong(seeds, seed, inputs)) {
    fmt::print("WRONG: input {}; again: {} {} --seed {} --only {}\n", *wrong, argv[0], folder, seed,
               *wrong);
    return 1;
  }
  fmt::print("{} inputs, none of them wrong\n", inputs);
  return 0;
}
