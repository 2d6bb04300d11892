// The best result so far of a search for the fastest way to run a problem.
#pragma once
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "cosmati/ops/operation.h"

namespace cosmati::plan {

template <class Problem>
class BestOffer {
 public:
  // Takes only offers of less than `limit` seconds, if there is one.
  explicit BestOffer(std::optional<double> limit = {}) : limit_(limit) {}
  bool found() const { return offer_.has_value(); }
  Offer<Problem> const& offer() const { return *offer_; }  // once found
  // True if the best offer, or before it the limit, if any, is more than `seconds`; with a `share`, more than
  // seconds / share.
  bool takes(double seconds, double share = 1) const {
    return (!offer_ && !limit_) || seconds < share * this->seconds();
  }
  // The seconds of the best offer, or the limit; infinite without either.
  double seconds() const {
    return offer_ ? offer_->predicted_seconds : limit_.value_or(std::numeric_limits<double>::infinity());
  }
  void take(Offer<Problem> offer) { offer_ = std::move(offer); }
  // Records why there is no offer. The last reason is kept; all are ignored once an offer has been found.
  void refuse(std::string reason) {
    if (!offer_) refusal_ = std::move(reason);
  }
  bool refused() const { return !offer_ && !refusal_.empty(); }

  // The offer, or a refusal.
  Offer<Problem> result() && {
    if (offer_) return std::move(*offer_);
    Offer<Problem> none;
    none.refusal = refusal_.empty() ? "no policy supports the problem" : std::move(refusal_);
    return none;
  }

 private:
  std::optional<Offer<Problem>> offer_;
  std::optional<double> limit_;
  std::string refusal_;
};

}  // namespace cosmati::plan
