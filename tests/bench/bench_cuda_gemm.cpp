// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// bench_cuda_gemm DTYPE NN|NT|TN M N K: the rate of one GEMM as the CUDA executor plays it, on
// random data; the letters say whether A and B are stored transposed. Measures a round whenever it
// reads a line, and answers with its TFLOP/s: so that a script can alternate it with something else
// (bench_gpu.py does, with torch.matmul). Ends with its input.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "executor/plugin.hpp"
#include "tests/bench/gemm_program.hpp"

namespace isoscale {
namespace {

program::DType type_of(const std::string& name) {
  for (const program::DType type :
       {program::DType::f64, program::DType::f32, program::DType::f16, program::DType::bf16}) {
    if (program::name(type) == name) return type;
  }
  throw base::UsageError(fmt::format("'{}' is not one of f64, f32, f16, bf16", name));
}

/// The folder of this program's build: where the plugin is.
std::filesystem::path build_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
}

int run(int argc, char** argv) {
  constexpr int arguments = 6, count = 20;
  if (argc != arguments) {
    fmt::print(stderr, "usage: bench_cuda_gemm DTYPE NN|NT|TN M N K\n");
    return 2;
  }
  const comm::Environment environment{&argc, &argv};
  const comm::Communicator world = comm::Communicator::world();
  const auto size = [&](int i) { return static_cast<std::uint32_t>(std::stoul(argv[i])); };
  const std::string letters = argv[2];
  const auto transpose = [&](std::size_t operand) {
    return letters.at(operand) == 'T' ? program::Transpose::yes : program::Transpose::no;
  };
  const bench::GemmShape shape{.type = type_of(argv[1]),
                               .a = transpose(0),
                               .b = transpose(1),
                               .m = size(3),
                               .n = size(4),
                               .k = size(5)};

  const executor::PluginSearch search =
      executor::open_plugin("libisoscale_cuda.so", {build_folder()});
  const std::string problem = search.table != nullptr ? search.table->problem() : search.problem;
  if (!problem.empty()) throw base::UsageError(problem);
  const auto cuda = search.table->make({}, world);
  const program::ProgramSet set = bench::gemm_program(shape, count);
  const auto session = cuda->prepare(set, world);
  session->play({.section = program::Section::setup});
  session->play({.section = program::Section::step});  // warm-up

  const double flop = 2.0 * shape.m * shape.n * shape.k * count;
  for (std::string line; std::getline(std::cin, line);) {
    const executor::PlayTime time = session->play({.section = program::Section::step});
    fmt::print("{:.2f}\n", flop / units::to_seconds(time.end - time.begin).value() * 1e-12);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace isoscale

int main(int argc, char** argv) {
  try {
    return isoscale::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_cuda_gemm: {}\n", error.what());
    return 2;
  }
}
