//===- Registration.h - All dialects and passes of nd -----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_PIPELINES_REGISTRATION_H
#define ND_PIPELINES_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace nd {

/// Every dialect that a stage of nd reads or writes, with the rules of upstream operations (external models).
void registerDialects(mlir::DialectRegistry &registry);

/// Every pass of nd, and the upstream passes that its pipelines use. Called once, before options are parsed.
void registerPasses();

} // namespace nd

#endif // ND_PIPELINES_REGISTRATION_H
