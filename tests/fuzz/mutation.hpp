// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/forked_work.hpp"

/// Damage by chance, the same for the same seed and number on every machine, and forked copies of
/// the test to try it in, since any of them may end the process.
namespace isoscale::fuzz {

class Mutator {
 public:
  /// Makes the mutator of the mutant number `item` of all that the seed gives.
  Mutator(std::uint64_t seed, std::uint64_t item);

  /// At most `end`, each as likely: the distributions of the standard library differ by library.
  [[nodiscard]] std::size_t below(std::size_t end);
  /// A number from 0 up whose size in bits is as likely to be small as large.
  [[nodiscard]] std::uint64_t number();

  /// One to four of: bits flipped, a byte replaced, a range overwritten (by zeros, ones, chance, or
  /// what stands elsewhere), a number put in, a piece left out, doubled or put in, the end cut off.
  void damage(std::string& bytes);

 private:
  void damage_once(std::string& bytes);
  void overwrite(std::string& bytes, std::size_t at, std::size_t size);
  void put_number(std::string& bytes, std::size_t at);

  std::mt19937_64 random_;
};

/// Returns `answer(item)` for the items 0 to items - 1, computed by at most `processes` forked
/// copies of this process, which take the items round-robin. `answer` must not throw; its changes
/// to memory are lost, and no copy runs this program's exit handlers. If a copy ends early, the
/// item that it worked on has no text, and other copies take over its remaining items. Throws
/// base::Error when the system gives no process.
[[nodiscard]] std::vector<base::Answer> answer_apart(
    std::size_t items, std::size_t processes,
    const std::function<std::string(std::size_t)>& answer);

}  // namespace isoscale::fuzz
