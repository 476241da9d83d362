// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/gemm_choice.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <exception>
#include <set>
#include <sstream>
#include <string_view>

#include "base/error.hpp"
#include "executor/cuda/check.hpp"
#include "executor/cuda/gemm_timing.hpp"

namespace isoscale::executor::cuda {
namespace {

constexpr std::size_t words = sizeof(cublasLtMatmulAlgo_t::data) / sizeof(std::uint64_t);
constexpr std::size_t word_digits = 16;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream{text};
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

CublasLt make_library() {
  cublasLtHandle_t handle = nullptr;
  check(cublasLtCreate(&handle));
  return CublasLt{handle};
}

/// The problems of `point` that are open on some rank, each with the lowest rank that has it.
std::map<std::string, int> owners(const std::map<std::string, const GemmProblem*>& mine,
                                  const comm::Communicator& point) {
  std::string shapes;
  for (const auto& [shape, problem] : mine) shapes += shape + '\n';
  const std::vector<std::string> all = point.gather(shapes);
  std::string table;
  if (point.rank() == 0) {
    std::set<std::string> seen;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      for (const std::string& shape : split(all[rank], '\n')) {
        if (seen.insert(shape).second) table += fmt::format("{}\t{}\n", shape, rank);
      }
    }
  }
  std::map<std::string, int> result;
  for (const std::string& line : split(point.broadcast(table), '\n')) {
    const std::size_t tab = line.find('\t');
    result[line.substr(0, tab)] = std::stoi(line.substr(tab + 1));
  }
  return result;
}

}  // namespace

std::string to_text(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const std::uint64_t word : algorithm.data) text += fmt::format("{:016x}", word);
  return text;
}

cublasLtMatmulAlgo_t algorithm_of(std::string_view text) {
  cublasLtMatmulAlgo_t algorithm{};
  bool is_valid = text.size() == words * word_digits;
  for (std::size_t i = 0; is_valid && i < words; ++i) {
    const char* const begin = text.data() + i * word_digits;
    const auto [end, error] = std::from_chars(begin, begin + word_digits, algorithm.data[i], 16);
    is_valid = error == std::errc{} && end == begin + word_digits;
  }
  if (!is_valid) {
    throw base::Error(fmt::format("'{}' is not an algorithm of cuBLASLt ({} hexadecimal digits)",
                                  text, words * word_digits));
  }
  return algorithm;
}

std::string arithmetic_of(const cublasLtMatmulAlgo_t& algorithm) {
  struct Flag {
    std::uint64_t bit;
    std::string_view name;
  };
  constexpr std::uint64_t tensor_cores = CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA |
                                         CUBLASLT_NUMERICAL_IMPL_FLAGS_IMMA |
                                         CUBLASLT_NUMERICAL_IMPL_FLAGS_DMMA;
  constexpr std::array units{Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA, "FMA"},
                             Flag{tensor_cores, "tensor cores"}};
  constexpr std::array inputs{Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F, "f16"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF, "bf16"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32, "tf32"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F, "f32"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_64F, "f64"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8I, "i8"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E4M3, "e4m3"},
                              Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E5M2, "e5m2"}};
  constexpr std::array sums{Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F, "f16"},
                            Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F, "f32"},
                            Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_64F, "f64"},
                            Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32I, "i32"}};
  std::uint64_t flags = 0;
  std::size_t written = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoCapGetAttribute(
      &algorithm, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags, sizeof flags, &written);
  if (status != CUBLAS_STATUS_SUCCESS || written != sizeof flags) return "";
  const auto names = [flags](std::span<const Flag> all) {
    std::string text;
    for (const Flag& flag : all) {
      if ((flags & flag.bit) != 0) text += fmt::format("{}{}", text.empty() ? "" : "+", flag.name);
    }
    return text.empty() ? std::string{"unknown"} : text;
  };
  return fmt::format("{}, {} inputs, {} sums", names(units), names(inputs), names(sums));
}

std::string to_lines(std::span<const GemmChoice> choices) {
  std::string lines;
  for (const GemmChoice& choice : choices) {
    lines += fmt::format("{}\t{}\t{}\t{}\t{}\n", choice.shape, choice.algorithm,
                         choice.workspace.value(), choice.time.value(), choice.candidates);
  }
  return lines;
}

std::vector<GemmChoice> choices_of(std::string_view lines) {
  std::vector<GemmChoice> choices;
  for (const std::string& line : split(std::string{lines}, '\n')) {
    const std::vector<std::string> fields = split(line, '\t');
    constexpr std::size_t field_count = 5;
    if (fields.size() != field_count) {
      throw base::Error(fmt::format("a GEMM choice of {} fields: {}", fields.size(), line));
    }
    choices.push_back({.shape = fields[0],
                       .algorithm = fields[1],
                       .workspace = units::Bytes{std::stoull(fields[2])},
                       .time = units::Seconds{std::stod(fields[3])},
                       .candidates = std::stoi(fields[4])});
  }
  return choices;
}

GemmChoices::GemmChoices(std::string library, std::span<const GemmChoice> known)
    : handle_(make_library()), library_(std::move(library)), was_given_any_(!known.empty()) {
  for (const GemmChoice& choice : known) {
    static_cast<void>(algorithm_of(choice.algorithm));  // refuses nonsense now
    GemmChoice given = choice;
    given.candidates = 0;
    given.time = {};
    choices_.emplace(choice.shape, given);
  }
}

void GemmChoices::decide(std::span<const GemmProblem> problems, const comm::Communicator& point) {
  std::map<std::string, const GemmProblem*> open;
  for (const GemmProblem& problem : problems) {
    std::string shape = problem.key(library_);
    if (!choices_.contains(shape)) open.emplace(std::move(shape), &problem);
  }
  std::vector<GemmChoice> mine;
  std::string trouble;
  const std::map<std::string, int> owner_of = owners(open, point);
  std::erase_if(open, [&](const auto& one) { return owner_of.at(one.first) != point.rank(); });
  try {
    for (const auto& [shape, problem] : open) {
      mine.push_back(fastest_algorithm(handle(), *problem, shape));
    }
  } catch (const std::exception& error) {
    trouble = error.what();
  }
  if (const comm::Vote vote = comm::all_ok(point, trouble); !vote.ok) {
    throw base::AgreedError(vote.why);
  }
  std::string all;
  for (const std::string& lines : point.gather(to_lines(mine))) all += lines;
  for (GemmChoice& choice : choices_of(point.broadcast(all))) {
    chosen_anew_ += was_given_any_ ? 1 : 0;
    choices_.emplace(choice.shape, std::move(choice));
  }
}

const GemmChoice& GemmChoices::of(const GemmProblem& problem) const {
  const auto found = choices_.find(problem.key(library_));
  if (found == choices_.end()) {
    throw base::Error(fmt::format("no algorithm was chosen for {}", problem.key(library_)));
  }
  return found->second;
}

}  // namespace isoscale::executor::cuda
