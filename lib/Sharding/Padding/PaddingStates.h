//===- PaddingStates.h - What padding holds ---------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Follows what the padding of every value holds: zeros (parameters, inputs, and what is linear in them), the number
// that marks an ignored label, minus infinity (logits beyond the vocabulary), true, or anything.
//
// A value can have one padded class in several dimensions: scores of queries and keys have the sequence twice. What
// padding holds is known per dimension, and followed from operands to results by the factors of an operation's rule:
// scores are zero behind the queries when the queries are, whatever stands behind the keys.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PADDING_PADDINGSTATES_H
#define ND_LIB_SHARDING_PADDING_PADDINGSTATES_H

#include "Padding/PadDimensions.h"

namespace nd {

enum class Padding {
  Any,      ///< numbers as elsewhere
  Zero,     ///< zeros, or false
  Repeated, ///< what stands everywhere along the dimension
  True,
  Ignored, ///< the label that does not count
  NegInf,
  Index, ///< indices of the padding itself: above all logical ones
  Wild,  ///< perhaps infinities or NaN: zero times it is not zero
};

class PaddingStates {
public:
  using Id = DimensionClasses::Id;

  PaddingStates(Program &program, const Analysis &analysis, const PaddedSizes &sizes,
                const llvm::DenseSet<Id> &sequence);

  /// A padded class in a dimension of a value.
  struct Place {
    int64_t dim;
    Id id;
  };
  llvm::SmallVector<Place> placesOf(mlir::Value value) const;

  Padding get(mlir::Value value, Place place) const;
  void set(mlir::Value value, Place place, Padding state) { states[{value, place.dim, place.id}] = state; }

  /// Where an operand has a class along a factor of its operation; nothing where it lacks the factor.
  std::optional<Place> find(const Analysis::Step &step, unsigned operand, int64_t factor, Id id) const;
  /// What an operand holds along a factor; one that lacks it is repeated along it.
  Padding along(const Analysis::Step &step, unsigned operand, int64_t factor, Id id) const;
  /// The factor along which a result has a class.
  int64_t factorOf(const Analysis::Step &step, unsigned result, Place place) const;

  /// States of the results of an operation from those of its operands.
  void transfer(const Analysis::Step &step);

  /// `copy` takes the place of `original`: it has the same classes, and holds the same as far as nobody sets otherwise.
  void addCopy(mlir::Value copy, mlir::Value original);
  DimensionClasses::Ids classesOf(mlir::Value value, int64_t dim) const;

private:
  Padding ofResult(const Analysis::Step &step, unsigned result, Place place) const;
  Padding ofComparison(mlir::Operation *op, Padding left, Padding right) const;

  const DimensionClasses &classes;
  const PaddedSizes &sizes;
  const llvm::DenseSet<Id> &sequence;
  int64_t ignoreIndex;
  llvm::DenseMap<std::tuple<mlir::Value, int64_t, Id>, Padding> states;
  llvm::DenseMap<mlir::Value, mlir::Value> originals; ///< of copies
};

} // namespace nd

#endif // ND_LIB_SHARDING_PADDING_PADDINGSTATES_H
