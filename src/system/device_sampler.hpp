// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "system/sample_source.hpp"
#include "units/quantity.hpp"

/// Looking at a machine's devices beside a measurement.
namespace isoscale::system {

/// What one channel was over time; readings that failed are left out.
struct SampledSeries {
  Channel channel;
  std::vector<units::Nanoseconds> time;  ///< steady clock
  std::vector<double> value;             ///< one for each time
};

/// Samples of some channels, bounded: where more than `most` would be held, every second one is
/// dropped. The first is always kept.
class SampleStore {
 public:
  /// `most` >= 2.
  explicit SampleStore(std::size_t most) : most_(most) {}
  /// Keeps a sample; whether samples were dropped for it, so that they are to come half as often.
  enum class Thinned : bool { no, yes };
  Thinned add(units::Nanoseconds time, std::vector<double> values);
  /// One for each channel with a reading, in the order of the channels; the values of a sample are
  /// theirs in that order.
  [[nodiscard]] std::vector<SampledSeries> series(const std::vector<Channel>& channels) const;

 private:
  struct Sample {
    units::Nanoseconds time;
    std::vector<double> values;
  };
  std::size_t most_;
  std::vector<Sample> samples_;
};

struct Sampling {
  units::Seconds interval{0.1};
  std::size_t most_samples = 600;  ///< at least 2; beyond, the interval doubles again and again
};

/// Reads sources from a thread of its own, which sleeps between samples, from when it is made until
/// stop(). The first sample is taken before the constructor returns and the last one by stop(), so
/// that counters have a difference however short the time. A last channel, "sample_time" of the
/// device "sampler", tells how long each sample took. Without sources there is no thread.
class DeviceSampler {
 public:
  DeviceSampler(std::vector<Source> sources, const Sampling& sampling);

  /// Ends the thread and hands over what was sampled; to be called once.
  [[nodiscard]] std::vector<SampledSeries> stop();

 private:
  void run(const std::stop_token& stopped);
  SampleStore::Thinned sample();

  std::vector<Source> sources_;
  std::vector<Channel> channels_;  ///< of all sources, in order, and the sampler's own
  units::Seconds interval_;
  SampleStore store_;
  std::mutex mutex_;  ///< for waking up only: the store belongs to the thread while there is one
  std::condition_variable_any wake_;
  std::jthread thread_;  ///< last: ends before what it uses
};

}  // namespace isoscale::system
