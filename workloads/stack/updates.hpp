// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/parameters.hpp"
#include "workloads/stack/slots.hpp"

namespace isoscale::workloads::stack {

/// Updates the weights, bucket by bucket: with zero=1|2 a rank its part, and all ranks gather the
/// whole; what is offloaded comes to the device before and returns after, one bucket while another
/// is updated.
class Updates {
 public:
  Updates(program::Builder& builder, const Parameters& parameters);

  /// Gradients are sums over `tokens` tokens.
  void write(double tokens);

 private:
  /// What an update reads and writes, where it can; in slots where that is not its home.
  struct Bundle {
    program::Slice master{}, moment1{}, moment2{};
    program::Slice weight{};                             ///< this rank's part
    program::Slice whole_weight{};                       ///< of the bucket; the same unless sharded
    std::vector<program::BufferId> states{}, weights{};  ///< slots
  };
  [[nodiscard]] Bundle fetch(const Bucket& bucket);
  void fetch_state(const Bucket& bucket, program::BufferId home, program::Slice& here,
                   Bundle& bundle);
  void fetch_weight(const Bucket& bucket, Bundle& bundle);
  void give_back(const Bucket& bucket, Bundle& bundle);
  void return_state(const Bucket& bucket, program::BufferId home, const program::Slice& here);
  void gather(const Bundle& bundle);
  [[nodiscard]] bool copies(Offload what) const;
  [[nodiscard]] bool advises(Offload what) const;

  program::Builder& builder_;
  const Parameters& parameters_;
  Slots states_, weights_;
  program::StreamId dp_ = 0, fetch_ = 0, return_ = 0;
};

}  // namespace isoscale::workloads::stack
