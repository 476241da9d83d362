// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/microbench/rank_speeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isoscale::runner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SniffPhases, PairNeighboursOfANodeFirstThenPlacesOfTwoNodes) {
  const std::vector<int> two_of_four{0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_THAT(sniff_phases(two_of_four), ElementsAre(ElementsAre(1, 0, 3, 2, 5, 4, 7, 6),
                                                     ElementsAre(4, 5, 6, 7, 0, 1, 2, 3)));
}

TEST(SniffPhases, LeaveNoNodeOutWhenTheirNumberIsOdd) {
  const std::vector<int> three{0, 1, 2};
  EXPECT_THAT(sniff_phases(three), ElementsAre(ElementsAre(1, 0, -1), ElementsAre(2, -1, 0)));
}

TEST(SniffPhases, FollowNodesAlsoWhenRanksAreDealtOut) {
  const std::vector<int> dealt{0, 1, 0, 1};
  EXPECT_THAT(sniff_phases(dealt), ElementsAre(ElementsAre(2, 3, 0, 1), ElementsAre(1, 0, 3, 2)));
}

TEST(SniffPhases, LetRanksWithoutAPartnerSitOut) {
  const std::vector<int> uneven{0, 0, 0, 1};
  EXPECT_THAT(sniff_phases(uneven),
              ElementsAre(ElementsAre(1, 0, -1, -1), ElementsAre(3, -1, -1, 0)));
  EXPECT_THAT(sniff_phases(std::vector<int>{0}), IsEmpty());
}

}  // namespace
}  // namespace isoscale::runner
